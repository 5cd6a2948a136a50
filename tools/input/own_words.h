// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --self-generate of oscar-validate: texts that the model draws at temperature 1, starting only
// with the token that every text begins with. On them the perplexity ratio of an arm is in
// expectation the exponential of its token KL, whatever the model was trained on; on other text it
// also depends on how foreign the text is. Every token must be drawn this way, so stop tokens do
// not end a text: the next text follows, as in packed text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calib/run/self_generation.h"
#include "tools/cli/command.h"
#include "tools/input/model_input.h"

namespace oscar {

struct OwnWordsArguments {
  int64_t sequences = -1;  // -1: kOwnSequences if the weights fit into memory, else none
  int64_t length = 0;      // tokens per text; 0: see OwnWordsRequest
};
inline constexpr int64_t kOwnSequences = 4;
void AddOwnWordsOptions(OptionTable& table, OwnWordsArguments* own);

struct OwnWordsRequest {
  OwnWordsArguments arguments;
  int64_t exact_tokens =
      0;  // kept by the windows; a default text has four times as many, at least 512
  uint64_t seed = 0;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
};

struct OwnWords {
  std::vector<std::vector<int32_t>> texts;
  Json description = nullptr;  // "own_words" in the report's "validation"
};

// Draws the texts from the model, or reads those of an earlier run from `job`, its own directory.
// Throws as GenerateDocuments; UsageError for a length that the model does not support.
OwnWords DrawOwnWords(const OwnWordsRequest& request, const ModelInput& input,
                      const std::filesystem::path& job, CommandContext& context);

struct OwnWordsPlan {
  int64_t sequences = 0, length = 0;  // in tokens
  double seconds = 0;                 // time to write them
  std::string line;                   // for --dry-run; empty if none are requested
};
OwnWordsPlan PlanOwnWords(const OwnWordsRequest& request, const ModelInput& input);

}  // namespace oscar
