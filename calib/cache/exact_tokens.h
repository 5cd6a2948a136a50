// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a growing cache that attention reads exactly: the first ones, and those that are
// not quantized yet. Trap: a method that quantizes whole blocks moves the end of the quantized part
// in steps, so the number of recent exact tokens is not constant.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// The exact tokens on one side (keys or values) of a cache.
struct ExactTokens {
  int64_t sink = 0;  // tokens t < sink are exact
  // Returns the end of the quantized part of a cache of `length` tokens, the query's own included.
  // Tokens from there on are exact. The result must not decrease as the length grows. Empty: every
  // token is quantized at once.
  std::function<int64_t(int64_t length)> quantized_end = {};

  bool any() const { return sink > 0 || quantized_end; }
};

// The exact tokens on both sides.
struct ExactSides {
  ExactTokens k, v;

  bool any() const { return k.any() || v.any(); }
};

ExactTokens ExactInWindows(const CacheWindows& windows);

// Returns the exact tokens of a method that quantizes whole blocks of `block` tokens, starting at
// token `sink`. A block is quantized once it is full and `recent` newer tokens follow it.
ExactTokens ExactUntilBlocksFill(int64_t sink, int64_t block, int64_t recent);

// Returns whether the query at each of `positions` reads each key exactly: bool [rows, keys] on the
// device of `keys`. `keys` [keys] int64 holds the positions of the keys. `positions` [rows] int64
// is on the host, so that nothing waits for the device.
at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions,
                     const at::Tensor& keys);
// ExactMask for keys 0, 1, ...
at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions, int64_t num_keys,
                     at::Device device = at::kCPU);

}  // namespace oscar
