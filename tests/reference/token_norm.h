// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The norm by which OScaR (arXiv 2605.19660) divides a token's keys before it quantizes them per
// channel. Trap: there is one norm for all KV heads of the token, not one per head.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "tests/reference/tree_sum.h"

namespace oscar {

// Returns the square root of the sum of squares of k [num_kv_heads * head_dim], or 1 for a token of
// zeros.
template <typename T>
T TokenNorm(std::span<const T> k) {
  std::vector<T> squares;
  for (const T value : k) squares.push_back(value * value);
  const T norm = std::sqrt(TreeSum<T>(squares));
  return norm > 0 ? norm : T{1};
}

}  // namespace oscar
