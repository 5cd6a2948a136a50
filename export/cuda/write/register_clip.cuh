// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the clip thresholds of the 16 rows of a tile in registers (percentile_clip.h). bf16
// magnitudes have the same order as their bit patterns, so the exact order statistic is found by
// bisection over integers. Each step counts the values of a row once, on tensor cores. Rows that
// are not finite get an arbitrary threshold.
#pragma once

#include "export/cuda/write/register_rows.cuh"

namespace oscar {

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

// Counts the values of rows g and g + 8 that reach the pivots (bit patterns in the halves of a
// word), by multiplying indicators in A fragments by ones. Counts whole rows, not only this lane's
// values.
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

// Finds, by bisection over all bit patterns, the largest thresholds that at least `rank` values
// reach. Returns their patterns in the halves of a word. It is slow but runs rarely.
template <int kOctets>
__device__ inline uint32_t FindThresholds(const RegisterRows<kOctets>& rows, float rank) {
  constexpr uint32_t kOnes = 0x3F803F80U;
  uint32_t found = 0;
#pragma unroll 1
  for (uint32_t step = 1U << 14; step > 0; step >>= 1) {
    uint32_t magnitude;  // recreated in each step so that magnitudes do not occupy registers
    asm volatile("mov.u32 %0, 0x7FFF7FFF;" : "=r"(magnitude));
    const uint32_t pivots = found + step * 0x10001U;
    const uint32_t pivot[2] = {__byte_perm(pivots, pivots, 0x1010),
                               __byte_perm(pivots, pivots, 0x3232)};
    const auto reach = [&](int h, int o) { return ReachPair(rows.y[h][o] & magnitude, pivot[h]); };
    float c[4] = {};
#pragma unroll
    for (int o = 0; o < kOctets; o += 2)
      MmaBf16(c, reach(0, o), reach(1, o), reach(0, o + 1), reach(1, o + 1), kOnes, kOnes);
    if (c[0] >= rank) found += step;
    if (c[2] >= rank) found += step << 16;
  }
  return found;
}

// Magnitudes as bytes, four per word in any order. A byte is the distance of the bit pattern from
// `low`, clamped to 0 .. 127.
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

// Sums (key + offset) over whole rows, as signed bytes. `offset` has one value per row, repeated
// four times.
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

// Finds the thresholds of both rows by linalg's ClipThresholdSort: the largest pattern that dim -
// index magnitudes reach. It first searches 126 patterns around `guess`. If a threshold lies
// elsewhere, it searches all patterns. load() returns the rows for that, so that they need not stay
// in registers.
//
// To count the keys that reach a pattern p, 128 - p is added to every key. Keys that reach p
// overflow to negative bytes, so each lowers the sum of the bytes by 256.
template <int kOctets, class Load>
__device__ inline void SortThresholds(const RegisterRows<kOctets>& rows, const Load& load,
                                      int index, const float (&guess)[2], float (&threshold)[2]) {
  constexpr int kDim = 8 * kOctets;
  const RegisterRows<kOctets> magnitudes = Magnitudes(rows);
  uint32_t low[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int middle = static_cast<int>(__float_as_uint(guess[h]) >> 16);
    low[h] = static_cast<uint32_t>(min(max(middle - 64, 0), 0x7F80 - 128));
  }
  const RowKeys<kOctets> keys = KeysAbove(magnitudes, low);
  uint32_t offset[2] = {0, 0};  // 128 - p, repeated four times
  int limit[2];                 // sums are at most this if dim - index keys reach p
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
    found = FindThresholds<kOctets>(load(), static_cast<float>(kDim - index));
  }
  threshold[0] = LowBf16(found);
  threshold[1] = HighBf16(found);
}

// Finds the thresholds by ClipThresholdBisect. A bf16 magnitude exceeds a float exactly if it
// reaches the successor of the float truncated to bf16.
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
