// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// TurboQuant's codecs for randomly rotated vectors (arXiv 2504.19874): the norm n is stored
// separately, and each coordinate of the direction u = y / n becomes the nearest level.
//
//   mse    u^ = levels[code]; with norm correction times 1 / sqrt(sum(levels^2) + 1e-16)
//   prod   u^ of b - 1 bits, residual r = u - u^, gamma = |r|, signs z of S r:
//          u^ + sqrt(pi / 2) (gamma / dim) S^T z; its inner products are unbiased over S
//
// Trap: `table` is in units where a coordinate has variance 1, and its numbers are divided by
// sqrt(dim) here. Norms are computed as max|y| sqrt(TreeSum((y / max|y|)^2)), so that no row
// overflows.
#pragma once

#include <cstdint>

#include "linalg/lloyd_max.h"
#include "linalg/stored_float.h"

namespace oscar {

struct SphereRule {
  LevelTable table;  // for b bits; for prod, b - 1 bits, and a single level 0 if b = 1
  bool norm_correction = false;
  StoredFloat norm_type = StoredFloat::kFloat16;  // type of n and gamma
};

// The table for 0 to 8 bits: SphereLloydMax, or a single level for 0 bits.
inline LevelTable SphereLevels(int bits, int64_t dim) {
  return bits == 0 ? LevelTable{{0}, {}} : SphereLloydMax(bits, dim);
}

inline constexpr double kNormCorrectionFloor = 1e-16;

}  // namespace oscar
