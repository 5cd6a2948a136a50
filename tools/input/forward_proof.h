// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a forward pass is right although config.json has unknown fields. A right forward
// pass has a much lower loss than guessing; a wrong one does not.
#pragma once

#include <optional>

#include "calib/observe/text_loss.h"
#include "tools/cli/log.h"
#include "tools/input/model_input.h"

namespace oscar {

// Does nothing unless the model has unknown fields and --unknown-config is "check". Throws
// InputError naming these fields if the loss does not prove the forward pass. Without a `loss`, or
// if the model wrote that text itself, a sample is run through the model.
void ProveForwardPass(const ModelArguments& arguments, const ModelInput& input, Log& log,
                      std::optional<TextLoss> loss = std::nullopt);

}  // namespace oscar
