// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The 16 rows of a tile in a warp's registers, and arithmetic on pairs of bf16 values. Lane 4g + t
// holds the pairs at dims 8o + 2t of rows g and g + 8.
#pragma once

#include <cuda_bf16.h>

#include "export/cuda/device/mma.cuh"
#include "export/cuda/write/tile_codec.cuh"

namespace oscar {

template <int kOctets>
struct RegisterRows {
  uint32_t y[2][kOctets];  // bf16 pairs
};

__device__ inline __nv_bfloat162 AsPair(uint32_t x) {
  return reinterpret_cast<const __nv_bfloat162&>(x);
}
__device__ inline uint32_t AsWord(__nv_bfloat162 x) { return reinterpret_cast<const uint32_t&>(x); }
// Returns the larger values; NaN if either operand is NaN.
__device__ inline uint32_t MaxPair(uint32_t a, uint32_t b) {
  return AsWord(__hmax2_nan(AsPair(a), AsPair(b)));
}
__device__ inline uint32_t MinPair(uint32_t a, uint32_t b) {
  return AsWord(__hmin2_nan(AsPair(a), AsPair(b)));
}
__device__ inline uint32_t NegatePair(uint32_t a) { return a ^ 0x80008000U; }
__device__ inline uint32_t AddPair(uint32_t a, uint32_t b) {
  return AsWord(__hadd2(AsPair(a), AsPair(b)));
}
// Returns 1 where a >= b, else 0.
__device__ inline uint32_t ReachPair(uint32_t a, uint32_t b) {
  return AsWord(__hge2(AsPair(a), AsPair(b)));
}
// Sets all bits of a half where a >= b, else none.
__device__ inline uint32_t ReachMask(uint32_t a, uint32_t b) {
  return __hge2_mask(AsPair(a), AsPair(b));
}
__device__ inline uint32_t SwapPair(uint32_t a) { return __byte_perm(a, a, 0x1032); }
__device__ inline uint32_t PairOf(uint32_t low, uint32_t high) {  // combines the low halves
  return __byte_perm(low, high, 0x5410);
}

}  // namespace oscar
