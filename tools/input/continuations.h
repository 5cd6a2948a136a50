// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --reasoning of oscar-validate: the model continues prefixes of the text with its most likely
// tokens and an exact cache. An arm's continuation is the same up to the first token that the arm
// would choose differently, so one pass over the exact model's continuation finds that token. Stop
// tokens do not end a continuation: all have the same length.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "capture/model/run/device.h"
#include "tools/cli/command.h"
#include "tools/input/model_input.h"

namespace oscar {

struct ContinuationArguments {
  int64_t samples = 0;    // 0: no continuations
  int64_t prefix = 1024;  // tokens
  int64_t length = 128;   // tokens that the model adds to each prefix
};
void AddContinuationOptions(OptionTable& table, ContinuationArguments* continuations);

// Returns prefixes with continuations: [samples] of prefix + length tokens. Prefixes are cut one
// after another from the texts, and each gets the opening tokens of the model's texts. A directory
// of `job` keeps the result for a resumed run. Throws UsageError if the texts have too few prefixes
// or the model supports too few positions; otherwise throws as GenerateDocuments.
std::vector<std::vector<int32_t>> Continue(const ContinuationArguments& arguments,
                                           const ModelInput& input, at::Device device,
                                           at::ScalarType dtype, const std::filesystem::path& job,
                                           CommandContext& context);

}  // namespace oscar
