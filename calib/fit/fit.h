// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits rotations to second moments: the eigenbasis of the importance covariance, composed with
// Hadamard and bit reversal.
#pragma once

#include <string_view>
#include <vector>

#include "calib/fit/side_result.h"
#include "calib/moments/layer_moments.h"
#include "calib/options.h"

namespace oscar {

// The four fits for one layer: keys from the query covariance and values from the chosen target,
// each with a rotation per KV head and with one shared rotation (from the mean of the heads'
// covariances). Fills only the rotation part of each SideResult.
struct LayerFit {
  SideResult k, v, k_shared, v_shared;
};

// Returns the covariance that latents, which are both keys and values, are fitted to: the sum of
// `query` and `value`, each divided by its trace.
Matrix JointCovariance(const Matrix& query, const Matrix& value);

// Replaces the queries and value targets of `moments` with their joint covariance, so that every
// fit suits rows that are both keys and values. Nothing can be folded then.
LayerMoments JointMoments(LayerMoments moments, ValueTarget target);

// Fits a layer. If keys and values are the same rows, both sides are fitted to JointCovariance.
// Throws NumericalError naming layer and head if a covariance has no usable eigenbasis.
LayerFit FitLayer(const LayerMoments& moments, const FitOptions& options);

// Data-free sides of the same shape, used as baselines in comparisons: R = I and R = H.
SideResult IdentitySide(int64_t dim);
SideResult HadamardSide(int64_t dim);

}  // namespace oscar
