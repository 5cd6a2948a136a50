// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From second moments to rotations: eigenbasis of the importance covariance, composed with Hadamard
// and bit reversal.
#pragma once

#include <string_view>
#include <vector>

#include "calib/fit/side_result.h"
#include "calib/moments/layer_moments.h"
#include "calib/options.h"

namespace oscar {

// The four fits of one layer: keys from the query covariance, values from the chosen target; per KV
// head, and shared (from the mean of the heads' covariances). Only the rotation part of each
// SideResult is filled.
struct LayerFit {
  SideResult k, v, k_shared, v_shared;
};

// What both sides of latents are fitted to: each divided by its trace, and added.
Matrix JointCovariance(const Matrix& query, const Matrix& value);

// `moments` whose queries and value targets are both that, so that whatever is fitted to one of
// them is fitted to the row that is both, and nothing is folded.
LayerMoments JointMoments(LayerMoments moments, ValueTarget target);

// Throws NumericalError naming layer and head where a covariance has no usable eigenbasis. Where
// keys and values are the same rows, both sides are fitted to the sum of the two covariances, each
// divided by its trace.
LayerFit FitLayer(const LayerMoments& moments, const FitOptions& options);

// Data-free sides of the same shape, for comparison arms: R = I and R = H.
SideResult IdentitySide(int64_t dim);
SideResult HadamardSide(int64_t dim);

}  // namespace oscar
