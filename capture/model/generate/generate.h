// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Continues prompts with text that the model generates. A continuation does not contain the stop
// token that ended it, because the model never reads that token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "capture/model/generate/decode_loop.h"
#include "capture/model/generate/token_sampler.h"

namespace oscar {

struct PromptToContinue {
  std::vector<int32_t> ids;  // at least one
  int64_t longest = 0;       // limit for the continuation, in tokens
  uint64_t number = 0;       // number of the prompt, used for draws
};

struct Continuation {
  std::vector<int32_t> ids;
  bool ended = false;  // ended by a stop token before `longest`
};

// Runs all prompts at once, until each has ended or reached its limit. `after_step` gets the number
// of new tokens after each step. If it returns false, generation stops and returns nothing.
std::optional<std::vector<Continuation>> Generate(
    DecodeLoop& decoder, const std::vector<PromptToContinue>& prompts,
    const std::vector<int32_t>& stop_ids, const SamplingOptions& sampling,
    const std::function<bool(int64_t new_tokens)>& after_step);

}  // namespace oscar
