// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The 16 rows of a tile in a warp's registers. Lane 4g + t holds the pairs at dims 8o + 2t of rows
// g and g + 8. Trap: arithmetic on pairs is spelled in PTX, since the compiler takes __nv_bfloat162
// apart.
#pragma once

#include <cuda_bf16.h>

#include "export/cuda/device/mma.cuh"
#include "export/cuda/write/tile_codec.cuh"

namespace oscar {

template <int kOctets>
struct RegisterRows {
  uint32_t y[2][kOctets];  // bf16 pairs
};

// The same in memory, for functions that are called seldom: the compiler would keep rows in the
// order of one wide store otherwise, and copies of them for everything else.
template <int kOctets>
struct StoredRows {
  volatile uint32_t y[2][kOctets];
};
template <int kOctets>
__device__ inline void StoreRows(const RegisterRows<kOctets>& rows, StoredRows<kOctets>& stored) {
#pragma unroll
  for (int o = 0; o < kOctets; ++o) {
    stored.y[0][o] = rows.y[0][o];
    stored.y[1][o] = rows.y[1][o];
  }
}
template <int kOctets>
__device__ inline void LoadRows(const StoredRows<kOctets>& stored, RegisterRows<kOctets>& rows) {
#pragma unroll
  for (int o = 0; o < kOctets; ++o) {
    rows.y[0][o] = stored.y[0][o];
    rows.y[1][o] = stored.y[1][o];
  }
}

// Pairs of bf16 in words. Not by __nv_bfloat162, which the compiler takes apart and copies.
// NaN if either is.
__device__ inline uint32_t MaxPair(uint32_t a, uint32_t b) {
  uint32_t max;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(max) : "r"(a), "r"(b));
  return max;
}
__device__ inline uint32_t MinPair(uint32_t a, uint32_t b) {
  uint32_t min;
  asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(min) : "r"(a), "r"(b));
  return min;
}
__device__ inline uint32_t NegatePair(uint32_t a) { return a ^ 0x80008000U; }
__device__ inline uint32_t AddPair(uint32_t a, uint32_t b) {  // rounded
  uint32_t sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3F803F80U), "r"(b));
  return sum;
}
// 1 where a reaches b, and 0.
__device__ inline uint32_t ReachPair(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
  uint32_t reach;
  asm("set.ge.bf16x2.bf16x2 %0, %1, %2;" : "=r"(reach) : "r"(a), "r"(b));
  return reach;
#else
  const __nv_bfloat162 reach = __hge2(reinterpret_cast<const __nv_bfloat162&>(a),
                                      reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const uint32_t&>(reach);
#endif
}
__device__ inline uint32_t SwapPair(uint32_t a) { return __byte_perm(a, a, 0x1032); }
__device__ inline uint32_t PairOf(uint32_t low, uint32_t high) {  // low halves of both
  return __byte_perm(low, high, 0x5410);
}

}  // namespace oscar
