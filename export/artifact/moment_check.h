// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that an artifact's rotations belong to its own moments. A rotation can still be orthogonal
// if it was transposed, changed, or swapped with that of another layer or head. Only the covariance
// to which it was fitted reveals the error. Trap: eigenvectors have no unique signs, so the check
// is that UᵀCU is diagonal; elements of U are never compared.
#pragma once

#include <cstdint>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// The largest allowed error of UᵀCU, relative to the largest eigenvalue. Rounding rotations to
// float32 causes about 1e-6.
inline constexpr double kMaxMomentResidual = 1e-4;

struct MomentCheck {
  int64_t checked = 0;    // number of checked rotations
  int64_t unchecked = 0;  // rotations whose covariance is missing
  double worst = 0;       // largest residual
};

// Checks all rotations. Throws NumericalError that names layer, side and rotation of the first
// misfit, InputError if the moments cannot be read or have another geometry.
MomentCheck CheckRotationsFitMoments(const Artifact& artifact);

}  // namespace oscar
