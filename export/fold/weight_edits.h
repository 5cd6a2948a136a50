// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Expresses transforms of keys and values as changes to a layer's weights. The model computes the
// same function, but its cache is easier to quantize. With QK-norm, scales on projections would be
// normalized away, so they are applied to the norms' weights. All heads of a layer share these, so
// they also share one set of key scales.
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
  // D [head_dim] for each KV head, or one for all: keys become k D, and queries q D^-1. The two
  // dims of a rope pair must have equal scales.
  std::vector<Vector> key_scales;
  // One per KV head: values become v x, and the inverse is applied to attention outputs.
  std::vector<KeyTransform> values;
};

// A tensor [rows, cols] as float64, row-major; a vector is [size, 1].
using WeightMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using WeightEdit = std::function<void(WeightMatrix& weight)>;

// Returns the edit of each tensor, by name. Throws UsageError if the layer cannot absorb the key
// scales: different scales per head with QK-norm, or different scales in a rope pair.
std::map<std::string, WeightEdit> WeightEdits(const LayerSpec& layer, const LayerFold& fold);

}  // namespace oscar
