// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists all that CheckTensors (model_spec.h) finds, instead of an error that names the first few.
// Missing tensors come before unused ones, so a renamed one is listed twice.
#pragma once

#include <string>
#include <vector>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// One sentence for each tensor that is missing, of the wrong shape, or stored and not part of the
// model.
std::vector<std::string> TensorProblems(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace oscar
