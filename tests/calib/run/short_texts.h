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

}  // namespace oscar
