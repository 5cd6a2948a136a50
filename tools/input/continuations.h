// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --reasoning of oscar-validate: what the model itself goes on with behind prefixes of the text,
// the likeliest token always and nothing quantized. Up to the first token that an arm would choose
// otherwise, the arm's own continuation is the same, so that one pass over the exact model's finds
// where the arm departs. Stop tokens do not stop: every continuation is as long.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "capture/model/run/device.h"
#include "tools/cli/command.h"
#include "tools/input/model_input.h"

namespace oscar {

struct ContinuationArguments {
  int64_t samples = 0;    // 0: none
  int64_t prefix = 1024;  // tokens
  int64_t length = 128;   // tokens that the model adds to each
};
void AddContinuationOptions(OptionTable& table, ContinuationArguments* continuations);

// Prefix and continuation, [samples] of prefix + length tokens; prefixes are cut from the texts one
// behind the other, each behind what a text of the model opens with. Drawn once for a run that is
// resumed: kept in a directory of `job`. UsageError where the texts have too few prefixes, or the
// model supports too few positions; throws as GenerateDocuments.
std::vector<std::vector<int32_t>> Continue(const ContinuationArguments& arguments,
                                           const ModelInput& input, at::Device device,
                                           at::ScalarType dtype, const std::filesystem::path& job,
                                           CommandContext& context);

}  // namespace oscar
