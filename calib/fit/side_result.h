// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "calib/cache_side.h"

namespace oscar {

// Result for one side (keys or values), per KV head or shared by all KV heads of the layer.
struct SideResult : CacheSide {
  std::vector<double> eigenvalues;  // [num_rotations, dim] ascending
  double clip_ratio = 0;            // chosen
  std::vector<double> clip_error;   // [candidates] held-out error / energy of each candidate; empty
                                    // if nothing was searched
  std::vector<double> clip_threshold;  // [num_kv_heads] clip_ratio percentile of |x R| over all
                                       // tokens; empty if there were none
  double orthogonality = 0;            // max|RᵀR - I| in float64, worst rotation
  double float32_orthogonality = 0;    // the same after the cast to float32
  double eigen_residual = 0;           // ‖AV - VΛ‖/‖A‖, worst rotation
  double min_relative_gap = 0;  // smallest gap between neighbouring eigenvalues / the largest
  double importance_max_over_mean = 0;  // max / mean of diag(Rᵀ C R), worst; 1 is perfectly flat
};

}  // namespace oscar
