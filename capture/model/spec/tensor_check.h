// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists all problems that CheckTensors (model_spec.h) finds; its error only names the first few.
// Missing tensors come first. A renamed tensor is listed twice, as missing and as unused.
#pragma once

#include <string>
#include <vector>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns one sentence for each tensor that is missing, has the wrong shape, or is stored but not
// part of the model.
std::vector<std::string> TensorProblems(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace oscar
