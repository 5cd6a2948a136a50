// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether an artifact's rotations are those of its own moments: a rotation that was transposed,
// that belongs to another layer or head, or whose values were changed is orthogonal all the same,
// and nothing but the covariance it was fitted to can tell. Trap: eigenvectors have no signs, so U
// is asked to make U^T C U diagonal and is never compared elementwise.
#pragma once

#include <cstdint>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// How far U^T C U may be from the stored eigenvalues, relative to the largest: float32 rotations
// leave about 1e-6.
inline constexpr double kMaxMomentResidual = 1e-4;

struct MomentCheck {
  int64_t checked = 0;    // rotations
  int64_t unchecked = 0;  // whose covariance the artifact does not hold
  double worst = 0;       // residual
};

// Throws NumericalError naming layer, side and head of the first rotation that does not fit;
// InputError where the moments cannot be read or have another geometry.
MomentCheck CheckRotationsFitMoments(const Artifact& artifact);

}  // namespace oscar
