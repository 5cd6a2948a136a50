// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of one projection, on the compute device in the compute dtype. The stored form may
// differ (quantized, fused, transposed); loaders convert it to this form.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "capture/model/spec/linear_spec.h"

namespace oscar {

struct LinearWeights {
  at::Tensor weight;  // [out_features, in_features]
  at::Tensor bias;    // [out_features], undefined for none
};

class WeightLoader;

// Requests the projection from `loader`; do not use it before loader.Finish(). Does nothing if
// there is no such projection.
LinearWeights LoadLinear(WeightLoader& loader, const LinearSpec& linear);

// One of several projections to load into `to`.
struct LinearLoad {
  LinearWeights* to;
  const LinearSpec* from;
};
void LoadLinears(WeightLoader& loader, std::initializer_list<LinearLoad> linears);

// x Wᵀ + b.  // [n, in_features] -> [n, out_features]
at::Tensor ApplyLinear(const LinearWeights& linear, const at::Tensor& x);

}  // namespace oscar
