// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that an artifact's rotations belong to its own moments. A rotation that was transposed,
// belongs to another layer or head, or has changed values can still be orthogonal; only the
// covariance that it was fitted to reveals the error. Trap: eigenvectors have no signs, so U must
// make U^T C U diagonal and is never compared elementwise.
#pragma once

#include <cstdint>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// The largest allowed error of U^T C U, relative to the largest eigenvalue. Float32 rotations cause
// about 1e-6.
inline constexpr double kMaxMomentResidual = 1e-4;

struct MomentCheck {
  int64_t checked = 0;    // number of checked rotations
  int64_t unchecked = 0;  // rotations whose covariance is missing
  double worst = 0;       // largest residual
};

// Checks all rotations. Throws NumericalError naming layer, side and head of the first that does
// not fit, and InputError if the moments cannot be read or have another geometry.
MomentCheck CheckRotationsFitMoments(const Artifact& artifact);

}  // namespace oscar
