// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Encodes a prompt with its answer: its length in tokens, and the places of the answers in it.
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

// Encodes text as a prompt: special tokens in front, but none at the end, where the answer follows.
class PromptEncoder {
 public:
  // `leading`: LeadingSpecialTokens(), or empty if the text has them. Keeps the tokenizer.
  PromptEncoder(const Tokenizer& tokenizer, std::vector<int32_t> leading)
      : tokenizer_(tokenizer), leading_(std::move(leading)) {}

  std::vector<int32_t> Encode(const std::string& text) const;

  // Returns tokens [begin, end) that hold `value`. The value starts `tail` bytes before the end of
  // the text and ends `after` bytes before it. It is found by decoding from the end, because a
  // normalizer may change the length of the prompt, but answers are plain ASCII. Throws InputError
  // if the tokenizer does not reproduce it.
  NeedleSample::Answer FindValue(const std::vector<int32_t>& ids, size_t tail, size_t after,
                                 const std::string& value) const;

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> leading_;
};

// Returns the largest number of units whose text has at most `length` tokens. Uses interpolation,
// and bisection if that is slow. `low` units have `low_tokens` tokens, which is not too many;
// `tokens_per_unit` is a first guess.
int64_t LargestSize(int64_t low, int64_t low_tokens, int64_t length, double tokens_per_unit,
                    const std::function<int64_t(int64_t num_units)>& count_tokens);

}  // namespace oscar
