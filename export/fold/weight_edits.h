// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Expresses transforms of keys and values as changes to a layer's weights. The model computes the
// same function, and its cache is easier to quantize. QK-norm weights are shared by all heads of a
// layer, so with QK-norm there is one set of key scales per layer; scales on projections would be
// normalized away.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/model/spec/model_spec.h"
#include "linalg/key_transform.h"

namespace oscar {

// The changes to one layer. Empty members change nothing.
struct LayerFold {
  // D [head_dim] for each KV head, or one for all: keys become k D, queries q D^-1. The two scales
  // of a rope pair must be equal.
  std::vector<Vector> key_scales;
  // One per KV head: values become v x, and the inverse is applied to attention outputs.
  std::vector<KeyTransform> values;
};

// A tensor [rows, cols] as float64, row-major; a vector is [size, 1].
using WeightMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using WeightEdit = std::function<void(WeightMatrix& weight)>;

// Maps tensor names to their edits. Throws UsageError if the layer cannot hold the scales: one per
// head with QK-norm, or different ones in a rope pair.
std::map<std::string, WeightEdit> WeightEdits(const LayerSpec& layer, const LayerFold& fold);

}  // namespace oscar
