// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a growing cache that attention reads exactly: the first ones, and those that are
// not quantized yet. Trap: if a method quantizes whole blocks, the end of the quantized part moves
// in steps. It is a function of the length, not a fixed distance.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// The exact tokens on one side (keys or values) of a cache.
struct ExactTokens {
  int64_t sink = 0;  // tokens t < sink are exact
  // Given a cache of `length` tokens, including the query's own: tokens t >= quantized_end are
  // exact. Must not decrease as the length grows. Empty: every token is quantized at once.
  std::function<int64_t(int64_t length)> quantized_end = {};

  bool any() const { return sink > 0 || quantized_end; }
};

// The exact tokens on both sides.
struct ExactSides {
  ExactTokens k, v;

  bool any() const { return k.any() || v.any(); }
};

ExactTokens ExactInWindows(const CacheWindows& windows);

// Tokens are quantized in whole blocks of `block` tokens, counted from token `sink` on, once a
// block is full and `recent` newer tokens follow it.
ExactTokens ExactUntilBlocksFill(int64_t sink, int64_t block, int64_t recent);

// Returns whether the query at each of `positions` reads each key exactly: bool [rows, keys] on the
// device of `keys`. `keys` [keys] int64 are key positions. `positions` [rows] int64 are on the
// host, which avoids waiting for the device.
at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions,
                     const at::Tensor& keys);
// ExactMask for keys 0, 1, ...
at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions, int64_t num_keys,
                     at::Device device = at::kCPU);

}  // namespace oscar
