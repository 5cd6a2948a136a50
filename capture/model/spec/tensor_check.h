// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists everything that CheckTensors (model_spec.h) finds, instead of throwing an error with the
// first few. Missing tensors come before unused ones, so a renamed tensor is listed twice.
#pragma once

#include <string>
#include <vector>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns one sentence for each tensor that is missing, has the wrong shape, or is stored but not
// part of the model.
std::vector<std::string> TensorProblems(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace oscar
