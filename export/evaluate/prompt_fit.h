// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Encodes a prompt with its answer, fits the prompt to a number of tokens, and finds the answers'
// tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "capture/text/tokenizer/tokenizer.h"
#include "export/evaluate/needle.h"

namespace oscar {

// Encodes a text as a prompt, with special tokens at the beginning but not at the end, where the
// answer is.
class PromptEncoder {
 public:
  // `leading`: LeadingSpecialTokens(), or empty if the text already has them. Keeps the tokenizer's
  // reference.
  PromptEncoder(const Tokenizer& tokenizer, std::vector<int32_t> leading)
      : tokenizer_(tokenizer), leading_(std::move(leading)) {}

  std::vector<int32_t> Encode(const std::string& text) const;

  // Returns the tokens [begin, end) that hold `value`, which starts `tail` bytes and ends `after`
  // bytes before the end of the text. Searches by decoding from the end, because answers are plain
  // ASCII, but a normalizer may change the length of the prompt. Throws InputError if the tokenizer
  // does not reproduce the value.
  NeedleSample::Answer FindValue(const std::vector<int32_t>& ids, size_t tail, size_t after,
                                 const std::string& value) const;

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> leading_;
};

// Returns the largest number of units whose text has at most `length` tokens. Searches by
// interpolation, and by bisection if that is slow. `low` is a number of units that fits, with
// `low_tokens` tokens. `tokens_per_unit` is a first guess. `count_tokens` returns the tokens for a
// number of units.
int64_t LargestSize(int64_t low, int64_t low_tokens, int64_t length, double tokens_per_unit,
                    const std::function<int64_t(int64_t num_units)>& count_tokens);

}  // namespace oscar
