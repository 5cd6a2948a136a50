// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --reasoning of oscar-validate: the model continues prefixes of the text greedily with an exact
// cache. An arm (a configuration that is measured) would generate the same tokens up to the first
// one that it would choose differently. Running the arm once over the exact model's continuation
// finds that token. Stop tokens do not end a continuation, so that all have the same length.
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

// Returns `samples` prefixes with their continuations, each prefix + length tokens long. Prefixes
// are cut one after another from the texts. Each starts with the tokens that open every text of the
// model. A directory of `job` keeps the result for a resumed run. Throws UsageError if the texts
// have too few prefixes or the model supports too few positions; otherwise throws as
// GenerateDocuments.
std::vector<std::vector<int32_t>> Continue(const ContinuationArguments& arguments,
                                           const ModelInput& input, at::Device device,
                                           at::ScalarType dtype, const std::filesystem::path& job,
                                           CommandContext& context);

}  // namespace oscar
