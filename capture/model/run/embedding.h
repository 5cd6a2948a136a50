// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Embedding rows of the tokens in use, gathered on the host from the mapped table, so that a table
// of several GB never becomes resident. Rows are copied in token order, which means random access
// to the disk.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "capture/model/run/layer_weights.h"
#include "capture/model/run/token_layout.h"  // RowRange
#include "capture/model/run/weight_loader.h"

namespace oscar {

// Some columns of a matrix; a count of 0 means all of them.
struct ColumnRange {
  int64_t first = 0, count = 0;
};

// Returns rows of matrix `name` for all ids, concatenated. Every id must be a row of the matrix.
// -> [T_total, columns], on the target
at::Tensor GatherRows(const Checkpoint& checkpoint, const std::string& name,
                      const std::vector<std::vector<int32_t>>& ids, const WeightTarget& target,
                      ColumnRange columns = {});

// Computes x * factor in place. `round`: rounds the factor to x's type first, because Gemma's
// factor is itself a tensor of that type.
void Scale(at::Tensor& x, double factor, bool round);

// The weights of PerLayerInputs except for the table.
struct PerLayerWeights {
  LinearWeights projection;
  NormWeights norm;
};
PerLayerWeights LoadPerLayerWeights(const Checkpoint& checkpoint, const ModelSpec& spec,
                                    const WeightTarget& target);

// The input that each layer gets in addition to hidden states (PerLayerInputsSpec). It is computed
// for one layer at a time, because the table has several GB and must not become resident.
class PerLayerInputs {
 public:
  // `embedded` [T_total, hidden_size]: the input of the first layer. Keeps references.
  PerLayerInputs(const Checkpoint& checkpoint, const ModelSpec& spec,
                 const std::vector<std::vector<int32_t>>& ids, at::Tensor embedded,
                 const WeightTarget& target);
  // Uses weights that have already been read.
  PerLayerInputs(const Checkpoint& checkpoint, const ModelSpec& spec,
                 const std::vector<std::vector<int32_t>>& ids, at::Tensor embedded,
                 const WeightTarget& target, PerLayerWeights weights);
  // Returns the inputs of one layer. `rows`: row ranges that are computed in turn and together
  // cover all rows; empty: all rows at once.
  // -> [T_total, dim]
  at::Tensor Of(int layer_id, const std::vector<RowRange>& rows = {}) const;

 private:
  const Checkpoint& checkpoint_;
  const ModelSpec& spec_;
  const std::vector<std::vector<int32_t>>& ids_;
  at::Tensor embedded_;
  WeightTarget target_;
  PerLayerWeights weights_;
};

}  // namespace oscar
