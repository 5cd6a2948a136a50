// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides by the loss on a text whether a model's forward pass is right although config.json has
// unknown fields. The loss of a right forward pass is much lower than that of guessing.
#pragma once

#include <optional>

#include "calib/observe/text_loss.h"
#include "tools/cli/log.h"
#include "tools/input/model_input.h"

namespace oscar {

// Does nothing unless the model has unknown fields and --unknown-config is "check". Throws
// InputError naming these fields if the loss is too high. `loss`: that of the data. If it is
// absent, or if the model wrote the data itself, runs the model on a sample of text.
void ProveForwardPass(const ModelArguments& arguments, const ModelInput& input, Log& log,
                      std::optional<TextLoss> loss = std::nullopt);

}  // namespace oscar
