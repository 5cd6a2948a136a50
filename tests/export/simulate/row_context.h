// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer of any geometry, without a model: random rows with outlier channels, an artifact fitted
// to them, and the context from which methods are made.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "calib/moments/layer_moments.h"
#include "export/simulate/cache_method.h"

namespace oscar {

struct RowGeometry {
  int64_t num_q_heads = 4, num_kv_heads = 2, head_dim = 32, v_head_dim = 32;
  int64_t sequences = 3, tokens = 160;
  uint64_t seed = 1;
};

// Returns random rows of one layer. Keys have a mean and a few large dimensions, like those of real
// models.
CalibrationRows RandomCalibrationRows(const RowGeometry& geometry);

// Returns the moments of one layer. Value rows also serve as attention output and diagonal target.
LayerMoments MomentsOf(const CalibrationRows& rows, const RowGeometry& geometry);

class RowContext {
 public:
  explicit RowContext(const RowGeometry& geometry, const MethodContext::Options& options = {});

  const AttentionSpec& spec() const { return layers_[0].attention; }
  const CalibrationRows& rows() const { return context_->rows(); }
  MethodContext& context() { return *context_; }
  // Adds a layer that has no rotations, for costs of models whose layers differ.
  void AddLayer(int64_t num_kv_heads, int64_t head_dim);

 private:
  std::vector<LayerSpec> layers_;
  Artifact artifact_;
  std::unique_ptr<MethodContext> context_;
};

}  // namespace oscar
