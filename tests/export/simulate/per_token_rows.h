// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of methods that quantize each token by itself: rows, the rows that a method
// stores, and their error.
#pragma once

#include <ATen/ATen.h>

#include <string_view>

#include "tests/export/simulate/row_context.h"

namespace oscar {

inline constexpr RowGeometry kSmallRows = {
    .head_dim = 64, .v_head_dim = 32, .sequences = 2, .tokens = 80};
inline constexpr RowGeometry kSquareRows = {
    .head_dim = 64, .v_head_dim = 64, .sequences = 2, .tokens = 80};
inline constexpr RowGeometry kWideRows = {.head_dim = 128, .v_head_dim = 64, .tokens = 150};

inline CacheSides RowsOf(RowContext& rows, at::ScalarType dtype) {
  return {rows.rows().k[0].to(dtype), rows.rows().v[0].to(dtype)};
}

inline CacheSides Stored(RowContext& rows, std::string_view name, const CacheSides& sides,
                         const ArmOptions& options = {}) {
  return CacheMethodNamed(name).make(rows.context(), 0, options).store(sides).quantized;
}

// Returns the squared norm of the error, divided by that of `expected`.
inline double RelativeError(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor difference = actual.to(at::kDouble) - expected.to(at::kDouble);
  return (difference.square().sum() / expected.to(at::kDouble).square().sum()).item<double>();
}

}  // namespace oscar
