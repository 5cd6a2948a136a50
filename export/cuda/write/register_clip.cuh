// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Clip thresholds of the 16 rows of a tile in registers (percentile_clip.h). bf16 patterns of
// magnitudes are ordered like the magnitudes, so the exact order statistic is a search for an
// integer; it needs one count of the row per halving, and tensor cores do the counting. Trap: rows
// that are not finite give any threshold.
#pragma once

#include "export/cuda/write/register_rows.cuh"

namespace oscar {

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

// About the sums of the magnitudes of whole rows g and g + 8: those of four octets are added in
// bf16.
template <int kOctets>
__device__ inline void SumMagnitudes(const RegisterRows<kOctets>& magnitudes, float (&sum)[2]) {
  constexpr uint32_t kOnes = 0x3F803F80U;
  const auto four = [&](int h, int o) {
    const uint32_t* y = &magnitudes.y[h][o];
    return AddPair(AddPair(y[0], y[1]), AddPair(y[2], y[3]));
  };
  float c[4] = {};
#pragma unroll
  for (int o = 0; o < kOctets; o += 8)
    MmaBf16(c, four(0, o), four(1, o), four(0, o + 4), four(1, o + 4), kOnes, kOnes);
  sum[0] = c[0];
  sum[1] = c[2];
}

// Values of whole rows g and g + 8 that reach the pivots (patterns in the halves of a word):
// indicators in A fragments times ones.
template <int kOctets>
__device__ inline void CountReaching(const RegisterRows<kOctets>& magnitudes, uint32_t pivots,
                                     float (&count)[2]) {
  constexpr uint32_t kOnes = 0x3F803F80U;
  const uint32_t pivot[2] = {__byte_perm(pivots, pivots, 0x1010),
                             __byte_perm(pivots, pivots, 0x3232)};
  const auto reach = [&](int h, int o) { return ReachPair(magnitudes.y[h][o], pivot[h]); };
  float c[2][4] = {};
#pragma unroll
  for (int o = 0; o < kOctets; o += 2)
    MmaBf16(c[o / 2 % 2], reach(0, o), reach(1, o), reach(0, o + 1), reach(1, o + 1), kOnes, kOnes);
  count[0] = c[0][0] + c[1][0];
  count[1] = c[0][2] + c[1][2];
}

// Raises `found` (patterns of both rows) by steps of `first` down to 1 as long as `rank` magnitudes
// reach it.
template <int kOctets>
__device__ inline uint32_t RaiseThresholds(const RegisterRows<kOctets>& magnitudes, uint32_t found,
                                           uint32_t first, float rank) {
#pragma unroll 1
  for (uint32_t step = first; step > 0; step >>= 1) {
    float count[2];
    CountReaching(magnitudes, found + step * 0x10001U, count);
    if (count[0] >= rank) found += step;
    if (count[1] >= rank) found += step << 16;
  }
  return found;
}

// The same between bounds that hold for any row. Called seldom, and kept out of the way of the
// rest.
template <int kOctets>
__device__ __noinline__ uint32_t FindThresholds(const StoredRows<kOctets>& stored, int rank) {
  RegisterRows<kOctets> rows;
  LoadRows(stored, rows);
  const RegisterRows<kOctets> magnitudes = Magnitudes(rows);
  const MagnitudeBounds bounds = BoundMagnitudes(FindExtremes(rows), rank);
  const uint32_t width = max((bounds.high & 0xFFFFU) - (bounds.low & 0xFFFFU),
                             (bounds.high >> 16) - (bounds.low >> 16));
  const int bits = 32 - __clz(static_cast<int>(__reduce_max_sync(kWarp, width)));
  // No pattern that is tried may leave the 15 bits of magnitudes.
  return RaiseThresholds(magnitudes, __vminu2(bounds.low, (0x8000U - (1U << bits)) * 0x10001U),
                         1U << bits >> 1, static_cast<float>(rank));
}

// Magnitudes as bytes, four to a word in any order: how far their patterns are above `low`, 127 at
// most.
template <int kOctets>
struct RowKeys {
  uint32_t k[2][kOctets / 2];
};
template <int kOctets>
__device__ inline RowKeys<kOctets> KeysAbove(const RegisterRows<kOctets>& magnitudes,
                                             const uint32_t (&low)[2]) {
  RowKeys<kOctets> keys;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const uint32_t minus_low = (0U - low[h] & 0xFFFFU) * 0x10001U;
    const auto pair = [&](int o) {
      return __viaddmin_s16x2_relu(magnitudes.y[h][o], minus_low, 0x007F007FU);
    };
#pragma unroll
    for (int i = 0; i < kOctets / 2; ++i) keys.k[h][i] = pair(2 * i + 1) * 256 + pair(2 * i);
  }
  return keys;
}

// Sums of (keys + offset) as signed bytes over whole rows; offset: one for each row, four times.
template <int kOctets>
__device__ inline void SumKeys(const RowKeys<kOctets>& keys, const uint32_t (&offset)[2],
                               int (&sum)[2]) {
  constexpr uint32_t kOnes = 0x01010101U;
  int c[2][4] = {};
#pragma unroll
  for (int i = 0; i < kOctets / 2; i += 2)
    MmaS8(c[i / 2 % 2], keys.k[0][i] + offset[0], keys.k[1][i] + offset[1],
          keys.k[0][i + 1] + offset[0], keys.k[1][i + 1] + offset[1], kOnes, kOnes);
  sum[0] = c[0][0] + c[1][0];
  sum[1] = c[0][2] + c[1][2];
}

// Thresholds of both rows by linalg's ClipThresholdSort: the largest pattern that dim - index
// magnitudes reach. It is looked for among 126 patterns around where a Gaussian row would have it,
// and if a row of the tile has it elsewhere, among all. A key x that reaches p turns negative as a
// byte when 128 - p is added, so the sum of those bytes is known but for 256 times the count.
template <int kOctets>
__device__ inline void SortThresholds(const RegisterRows<kOctets>& rows, int index, float guess,
                                      float (&threshold)[2]) {
  constexpr int kDim = 8 * kOctets;
  const RegisterRows<kOctets> magnitudes = Magnitudes(rows);
  float total[2];
  SumMagnitudes(magnitudes, total);
  uint32_t low[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int middle = static_cast<int>(__float_as_uint(total[h] * guess) >> 16);
    low[h] = static_cast<uint32_t>(min(max(middle - 64, 0), 0x7F80 - 128));
  }
  const RowKeys<kOctets> keys = KeysAbove(magnitudes, low);
  uint32_t offset[2] = {0, 0};  // 128 - p, four times
  int limit[2];                 // of the sum, if `rank` keys reach p
  SumKeys(keys, offset, limit);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    offset[h] = 0x80808080U;
    limit[h] += kDim * 128 - 256 * (kDim - index);
  }
#pragma unroll
  for (int step = 64; step > 0; step /= 2) {
    const uint32_t tried[2] = {offset[0] - step * 0x01010101U, offset[1] - step * 0x01010101U};
    int sum[2];
    SumKeys(keys, tried, sum);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (sum[h] <= limit[h] - kDim * step) {
        offset[h] = tried[h];
        limit[h] -= kDim * step;
      }
    }
  }
  uint32_t found = 0;
  bool inside = true;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const uint32_t p = 128 - (offset[h] & 0xFFU);
    inside = inside & (p - 1 < 126);
    found |= (low[h] + p) << (16 * h);
  }
  if (!__all_sync(kWarp, inside)) {
    StoredRows<kOctets> stored;
    StoreRows(rows, stored);
    found = FindThresholds(stored, kDim - index);
  }
  threshold[0] = LowBf16(found);
  threshold[1] = HighBf16(found);
}

// By ClipThresholdBisect. A magnitude in bf16 is above a float exactly if it reaches the next bf16
// after the float cut to bf16.
template <int kOctets>
__device__ inline void BisectThresholds(const RegisterRows<kOctets>& rows, int index,
                                        const float (&largest)[2], float (&threshold)[2]) {
  const float limit = static_cast<float>(8 * kOctets - index);
  const RegisterRows<kOctets> magnitudes = Magnitudes(rows);
  float low[2] = {0, 0};
  float high[2] = {largest[0], largest[1]};
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
