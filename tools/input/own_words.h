// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --self-generate of oscar-validate: texts that the model samples at temperature 1 after only the
// tokens that open every text.
//
// On such text, the logarithm of an arm's perplexity ratio has the arm's next-token KL as its
// expectation. On other text the ratio also depends on how well the model knows that text. This
// needs every token to be sampled. So a stop token does not end a text: the model continues with a
// new document, as in packed text.
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
      0;  // tokens in the windows; a default text has four times as many, at least 512
  uint64_t seed = 0;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
};

struct OwnWords {
  std::vector<std::vector<int32_t>> texts;
  Json description = nullptr;  // "own_words" in the report's "validation"
};

// Samples the texts from the model, or reads those of an earlier run from `job`, a directory for
// this purpose. Throws UsageError for a length that the model does not support; otherwise throws as
// GenerateDocuments.
OwnWords DrawOwnWords(const OwnWordsRequest& request, const ModelInput& input,
                      const std::filesystem::path& job, CommandContext& context);

struct OwnWordsPlan {
  int64_t sequences = 0, length = 0;  // in tokens
  double seconds = 0;                 // time to write them
  std::string line;                   // for --dry-run; empty if none are requested
};
OwnWordsPlan PlanOwnWords(const OwnWordsRequest& request, const ModelInput& input);

}  // namespace oscar
