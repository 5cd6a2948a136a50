// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The 16 rows of a tile in a warp's registers: extremes and clip thresholds, two values at a time.
// Lane 4g + t holds the pairs at dims 8o + 2t of rows g and g + 8. Trap: bf16 patterns of
// magnitudes are ordered like the magnitudes, so the exact order statistic is a search for an
// integer; it needs one count of the row per halving, and tensor cores do the counting.
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
// NaN if either is.
__device__ inline uint32_t MaxPair(uint32_t a, uint32_t b) {
  return AsWord(__hmax2_nan(AsPair(a), AsPair(b)));
}
__device__ inline uint32_t MinPair(uint32_t a, uint32_t b) {
  return AsWord(__hmin2_nan(AsPair(a), AsPair(b)));
}
__device__ inline uint32_t NegatePair(uint32_t a) { return AsWord(__hneg2(AsPair(a))); }
__device__ inline uint32_t SwapPair(uint32_t a) { return __byte_perm(a, a, 0x1032); }
__device__ inline uint32_t PairOf(uint32_t low, uint32_t high) {  // low halves of both
  return __byte_perm(low, high, 0x5410);
}

// Over four octets each, both halves apart.
template <int kOctets>
struct Extremes {
  uint32_t max[2][kOctets / 4], min[2][kOctets / 4];
};

template <int kOctets>
__device__ inline Extremes<kOctets> FindExtremes(const RegisterRows<kOctets>& rows) {
  Extremes<kOctets> e;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int b = 0; b < kOctets / 4; ++b) {  // one after another: Hopper takes three at a time
      const uint32_t* y = &rows.y[h][4 * b];
      e.max[h][b] = MaxPair(MaxPair(MaxPair(y[0], y[1]), y[2]), y[3]);
      e.min[h][b] = MinPair(MinPair(MinPair(y[0], y[1]), y[2]), y[3]);
    }
  }
  return e;
}

// Of both rows, as patterns in the halves of a word: the largest magnitude, and one that at least
// `rank` magnitudes reach (pattern 0 where that is not known): the rows are cut into at least
// `rank` pieces, and each piece has its largest.
struct MagnitudeBounds {
  uint32_t high, low;
};
template <int kOctets>
__device__ inline MagnitudeBounds BoundMagnitudes(const Extremes<kOctets>& e, int rank) {
  constexpr int kBlocks = kOctets / 4;
  uint32_t high[2], low[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    uint32_t piece[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) piece[b] = MaxPair(e.max[h][b], NegatePair(e.min[h][b]));
    uint32_t fine = piece[0];
    uint32_t middle = MaxPair(piece[0], piece[1]);
    high[h] = middle;
#pragma unroll
    for (int b = 1; b < kBlocks; ++b) fine = MinPair(fine, piece[b]);
#pragma unroll
    for (int b = 2; b < kBlocks; b += 2) {
      const uint32_t pair = MaxPair(piece[b], piece[b + 1]);
      middle = MinPair(middle, pair);
      high[h] = MaxPair(high[h], pair);
    }
    low[h] = rank <= 8 ? high[h] : rank <= kOctets ? middle : rank <= 2 * kOctets ? fine : 0;
    high[h] = MaxPair(high[h], SwapPair(high[h]));
    low[h] = MinPair(low[h], SwapPair(low[h]));
  }
  MagnitudeBounds bounds = {PairOf(high[0], high[1]), PairOf(low[0], low[1])};
#pragma unroll
  for (int lane = 1; lane <= 2; lane *= 2) {
    bounds.high = MaxPair(bounds.high, __shfl_xor_sync(kWarp, bounds.high, lane));
    bounds.low = MinPair(bounds.low, __shfl_xor_sync(kWarp, bounds.low, lane));
  }
  bounds.high &= 0x7FFF7FFFU;  // -0 may have come out
  bounds.low &= 0x7FFF7FFFU;
  return bounds;
}

template <int kOctets>
__device__ inline RegisterRows<kOctets> Magnitudes(const RegisterRows<kOctets>& rows) {
  RegisterRows<kOctets> magnitudes;
#pragma unroll
  for (int o = 0; o < kOctets; ++o) {
    magnitudes.y[0][o] = rows.y[0][o] & 0x7FFF7FFFU;
    magnitudes.y[1][o] = rows.y[1][o] & 0x7FFF7FFFU;
  }
  return magnitudes;
}

// Values of whole rows g and g + 8 that reach the pivots (patterns in the halves of a word):
// indicators in A fragments times ones.
template <int kOctets>
__device__ inline void CountReaching(const RegisterRows<kOctets>& magnitudes, uint32_t pivots,
                                     float (&count)[2]) {
  constexpr uint32_t kOnes = 0x3F803F80U;
  const __nv_bfloat162 pivot[2] = {AsPair(__byte_perm(pivots, pivots, 0x1010)),
                                   AsPair(__byte_perm(pivots, pivots, 0x3232))};
  const auto reach = [&](int h, int o) {
    return AsWord(__hge2(AsPair(magnitudes.y[h][o]), pivot[h]));
  };
  float c[2][4] = {};
#pragma unroll
  for (int o = 0; o < kOctets; o += 2)
    MmaBf16(c[o / 2 % 2], reach(0, o), reach(1, o), reach(0, o + 1), reach(1, o + 1), kOnes, kOnes);
  count[0] = c[0][0] + c[1][0];
  count[1] = c[0][2] + c[1][2];
}

// Thresholds of both rows by linalg's ClipThresholdSort: the largest pattern that dim - index
// magnitudes reach, bit by bit upwards from the bound.
template <int kOctets>
__device__ inline void SortThresholds(const RegisterRows<kOctets>& magnitudes,
                                      const MagnitudeBounds& bounds, int index,
                                      float (&threshold)[2]) {
  const float rank = static_cast<float>(8 * kOctets - index);
  const uint32_t width = max((bounds.high & 0xFFFFU) - (bounds.low & 0xFFFFU),
                             (bounds.high >> 16) - (bounds.low >> 16));
  const int bits = 32 - __clz(static_cast<int>(__reduce_max_sync(kWarp, width)));
  // No pattern that is tried may leave the 15 bits of magnitudes.
  uint32_t found = __vminu2(bounds.low, (0x8000U - (1U << bits)) * 0x10001U);
#pragma unroll 1
  for (uint32_t step = 1U << bits >> 1; step > 0; step >>= 1) {
    float count[2];
    CountReaching(magnitudes, found + step * 0x10001U, count);
    if (count[0] >= rank) found += step;
    if (count[1] >= rank) found += step << 16;
  }
  threshold[0] = LowBf16(found);
  threshold[1] = HighBf16(found);
}

// By ClipThresholdBisect. A magnitude in bf16 is above a float exactly if it reaches the next bf16
// after the float cut to bf16.
template <int kOctets>
__device__ inline void BisectThresholds(const RegisterRows<kOctets>& magnitudes,
                                        const MagnitudeBounds& bounds, int index,
                                        float (&threshold)[2]) {
  const float limit = static_cast<float>(8 * kOctets - index);
  float low[2] = {0, 0};
  float high[2] = {LowBf16(bounds.high), HighBf16(bounds.high)};
  constexpr int kSteps = kOctets <= 8 ? 6 : kOctets <= 16 ? 7 : kOctets <= 32 ? 8 : 9;
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) {
    const float middle[2] = {__fmul_rn(0.5F, __fadd_rn(low[0], high[0])),
                             __fmul_rn(0.5F, __fadd_rn(low[1], high[1]))};
    float count[2];
    CountReaching(
        magnitudes,
        __byte_perm(__float_as_uint(middle[0]), __float_as_uint(middle[1]), 0x7632) + 0x10001U,
        count);
    (count[0] > limit ? low[0] : high[0]) = middle[0];
    (count[1] > limit ? low[1] : high[1]) = middle[1];
  }
  threshold[0] = high[0];
  threshold[1] = high[1];
}

}  // namespace oscar
