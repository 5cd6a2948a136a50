// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A prompt with its answer as token ids: of a given length, and where in it the answers stand.
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

// Text to ids as a prompt: special tokens in front, none behind (the answer is continued there).
class PromptEncoder {
 public:
  // `leading`: LeadingSpecialTokens(), or none where the text holds them. The tokenizer is kept.
  PromptEncoder(const Tokenizer& tokenizer, std::vector<int32_t> leading)
      : tokenizer_(tokenizer), leading_(std::move(leading)) {}

  std::vector<int32_t> Encode(const std::string& text) const;

  // Tokens [begin, end) that hold `value`, of which and of what follows `tail` and `after` bytes
  // are left to the end of the text. Found from the end by decoding: a normalizer may change the
  // length of the prompt, but answers are plain ASCII. InputError if the tokenizer does not give it
  // back.
  NeedleSample::Answer FindValue(const std::vector<int32_t>& ids, size_t tail, size_t after,
                                 const std::string& value) const;

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> leading_;
};

// The number of units whose text has at most `length` tokens, while one more unit has too many: by
// interpolation, and by bisection where that is slow. `low` units have `low_tokens`, not too many;
// `tokens_per_unit` is a first guess.
int64_t LargestSize(int64_t low, int64_t low_tokens, int64_t length, double tokens_per_unit,
                    const std::function<int64_t(int64_t num_units)>& count_tokens);

}  // namespace oscar
