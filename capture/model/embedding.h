// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Embedding rows of the tokens in use, gathered on the host out of the mapped table, so that a
// table of several GB never becomes resident. Trap: rows are copied in the order of the tokens; a
// table read this way is random access to disk.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "capture/model/weight_loader.h"

namespace oscar {

// Rows of matrix `name` for all ids, concatenated.  // [T_total, columns], on the target
// Every id must be a row of the matrix.
at::Tensor GatherRows(const Checkpoint& checkpoint, const std::string& name,
                      const std::vector<std::vector<int32_t>>& ids, const WeightTarget& target);

}  // namespace oscar
