// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The factor OScaR (arXiv 2605.19660) divides a token's keys by before they are quantized per
// channel. Trap: one norm over all KV heads of the token, not one per head.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "tests/reference/tree_sum.h"

namespace oscar {

// sqrt of the sum of squares of k [num_kv_heads * head_dim]; 1 for a token of zeros.
template <typename T>
T TokenNorm(std::span<const T> k) {
  std::vector<T> squares;
  for (const T value : k) squares.push_back(value * value);
  const T norm = std::sqrt(TreeSum<T>(squares));
  return norm > 0 ? norm : T{1};
}

}  // namespace oscar
