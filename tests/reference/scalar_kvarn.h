// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the tiles in linalg/variance_normalization.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linalg/stored_float.h"
#include "linalg/variance_normalization.h"

namespace oscar {

template <typename T>
struct VarianceFactors {
  std::vector<T> columns, rows;  // [columns], [rows]: exp(a), exp(b) of the best iteration
  T imbalance = 0;               // J of that iteration
};

// Normalizes tile [rows, columns], which is row-major. T is float or double.
template <typename T>
VarianceFactors<T> NormalizeVariance(std::span<const T> tile, const TileShape& shape,
                                     int iterations);

// A quantized tile: x^_ij = (q_ij scale_i + zero_i) column_factor_j.
template <typename T>
struct KvarnTile {
  std::vector<uint8_t> codes;  // [rows, columns]
  std::vector<T> scales;       // [rows]: row factor times the scale of the normalized row
  std::vector<T> zeros;        // [rows]: row factor times its minimum
  std::vector<T> columns;      // [columns]
};

// Scales, zeros and column factors are rounded to `metadata`.
template <typename T>
KvarnTile<T> EncodeKvarnTile(std::span<const T> tile, const TileShape& shape, int bits,
                             int iterations, StoredFloat metadata = StoredFloat::kFloat16);
template <typename T>
void DecodeKvarnTile(const KvarnTile<T>& tile, std::span<T> y);  // [rows, columns]

}  // namespace oscar
