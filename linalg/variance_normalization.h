// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVarN (arXiv 2606.03458) divides a tile by one factor per column and one per row, so that all
// standard deviations of columns and rows approach 1. Then it quantizes each row (family A2). It
// keeps the state of the iteration with the smallest J, not that of the last one.
//
//   M' = M / exp(a_j) / exp(b_i)          j: columns, i: rows; std is the unbiased sample's
//   J  = max_j std_col / max(min_j std_col, 1e-8) + the same for rows
//   a_j += ln clamp(std_col,j(M'), 1e-3, 1e3), clamped to [-0.3, 10];   then b_i of the new M'
//
// Sums are added as trees, and exp and ln are computed in float64 and rounded, so that all devices
// agree bit for bit.
#pragma once

#include <cstdint>

#include "linalg/affine_families.h"  // AffineRule, StoredFloat

namespace oscar {

inline constexpr double kVarianceStdFloor = 1e-3, kVarianceStdCeiling = 1e3;
inline constexpr double kVarianceLogFloor = -0.3, kVarianceLogCeiling = 10;
inline constexpr double kVarianceLeastDivisor = 1e-8;  // lower bound for the divisor in J

struct TileShape {
  int64_t rows = 0, columns = 0;  // each at least 2
};

// Quantization rule for a normalized row: family A2, ties to even, scale at least 1e-10, metadata
// not rounded.
inline AffineRule KvarnRowRule(int bits) {
  return {.family = AffineFamily::kMinOffset, .bits = bits, .min_scale = 1e-10F};
}

// Bytes of a tile: codes, a float16 scale and zero per row, and a float16 factor per column.
constexpr int64_t KvarnTileBytes(const TileShape& shape, int bits) {
  return (shape.rows * shape.columns * bits + 7) / 8 + 4 * shape.rows + 2 * shape.columns;
}

}  // namespace oscar
