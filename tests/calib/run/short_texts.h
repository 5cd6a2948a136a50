// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Documents of many lengths, with token ids that every model of tests/data/families has, and
// calibrations on them. There are enough documents to share them out in pieces of a few hundred
// tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "calib/run/calibrate.h"
#include "capture/ranks/rank_group.h"

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

// A small calibration of a family of tests/data/families.
struct ShortRun {
  std::string family;
  bool chooses = true;       // --auto
  int64_t refine = 0;        // steps
  int64_t expert_bytes = 1;  // loads one expert at a time
  int64_t token_chunk = 256;
  bool masked = false;  // some queries do not count
};

// Returns the input for all texts or, if `count` is given, for piece `own` (from 0) of `count`. The
// piece belongs to a rank of `group` or, without a group, to a shard.
inline CalibrationInput ShortInput(const ShortRun& of, const ModelSpec& spec,
                                   const Checkpoint& checkpoint, int count = 0, size_t own = 0,
                                   RankGroup* group = nullptr) {
  CalibrationInput input{.device = at::kCPU, .dtype = at::kFloat, .options = {}};
  std::vector<std::vector<int32_t>> texts = ShortTexts();
  LoopOptions loop = CalibrationLoopOptions();
  loop.expert_bytes = of.expert_bytes;
  loop.token_chunk = of.token_chunk;
  if (count > 0) {
    input.ranks.apart = group == nullptr;
    if (group != nullptr) loop.ranks = input.ranks.group = group;
    for (const auto& text : texts) input.ranks.lengths.push_back(std::ssize(text));
    input.ranks.shares =
        ShareOut(spec, input.ranks.lengths, of.token_chunk, count, input.ranks.apart);
    input.ranks.number = own;
    const RankShare& share = input.ranks.own();
    const auto first = texts.begin() + static_cast<std::ptrdiff_t>(share.first_sequence);
    texts = {first, first + static_cast<std::ptrdiff_t>(share.num_sequences)};
    loop.tokens_before = share.first_token;
    loop.tokens_of_all = input.num_tokens();
  }
  input.source = std::make_shared<ModelSource>(checkpoint, spec, texts, at::kCPU, at::kFloat, loop);
  if (of.masked) input.counted = ShortMasks();
  input.options.min_tokens = 1;
  input.options.error_rows = 7;
  input.options.sink_tokens = input.options.recent_tokens = 8;
  input.options.automatic.enabled = of.chooses;
  input.options.automatic.consumer = Consumer::kAny;
  input.options.automatic.refine = of.refine;
  return input;
}

}  // namespace oscar
