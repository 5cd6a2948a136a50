// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Documents of many lengths, of ids that every model of tests/data/families has: enough to be
// shared out, in pieces of a few hundred tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace oscar {

inline std::vector<std::vector<int32_t>> ShortTexts() {
  std::minstd_rand random(5);
  std::vector<std::vector<int32_t>> texts;
  for (const size_t length : {90, 250, 101, 60, 31, 200, 160, 16, 240, 120, 130, 77, 33}) {
    texts.emplace_back(length);
    for (int32_t& id : texts.back()) id = static_cast<int32_t>(random() % 32);
  }
  return texts;
}

// Returns masks of counted queries: all, none, the last two thirds, or every other one.
inline std::vector<std::vector<uint8_t>> ShortMasks() {
  std::vector<std::vector<uint8_t>> masks;
  for (const auto& text : ShortTexts()) {
    const size_t kind = masks.size() % 5;
    std::vector<uint8_t>& mask = masks.emplace_back();
    for (size_t i = 0; kind > 0 && i < text.size(); ++i)
      mask.push_back(kind == 1 ? 0 : kind == 4 ? i % 2 : i >= text.size() / 3);
  }
  return masks;
}

}  // namespace oscar
