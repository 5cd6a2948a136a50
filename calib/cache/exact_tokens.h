// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tokens of a cache attention reads exactly, at any moment of its life: the first ones, and
// those that are not quantized yet. Trap: if a method quantizes whole blocks, the end of the
// quantized part moves in steps, so it is a function of the length and not a fixed distance.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// One side (keys or values) of a cache.
struct ExactTokens {
  int64_t sink = 0;  // tokens t < sink are exact
  // For a cache of `length` tokens, including the query's own: tokens t >= quantized_end are exact.
  // It must not decrease as the length grows. Empty: every token is quantized at once.
  std::function<int64_t(int64_t length)> quantized_end = {};

  bool any() const { return sink > 0 || quantized_end; }
};

// Both sides.
struct ExactSides {
  ExactTokens k, v;

  bool any() const { return k.any() || v.any(); }
};

ExactTokens ExactInWindows(const CacheWindows& windows);

// Tokens are quantized in whole blocks of `block` tokens, counted from token `sink` on, once a
// block is full and `recent` younger tokens follow it.
ExactTokens ExactUntilBlocksFill(int64_t sink, int64_t block, int64_t recent);

// Bool [rows, keys] on the device of `keys`, positions [keys] int64: whether the query at a
// position reads the key there exactly. `positions` [rows] int64 are on the host, which avoids
// waiting for a device.
at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions,
                     const at::Tensor& keys);
// ExactMask for keys 0, 1, ...
at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions, int64_t num_keys,
                     at::Device device = at::kCPU);

}  // namespace oscar
