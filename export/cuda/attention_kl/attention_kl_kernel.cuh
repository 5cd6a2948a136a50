// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes a thread's part of a tile of logits. It has the layout of m16n8 accumulators, whichever
// instruction computed them: rows lane / 4 and lane / 4 + 8, columns 8 j + 2 (lane % 4) + {0, 1}.
// Every thread keeps its own sums, so AddTile() exchanges no values between lanes. The sums are
// merged in float64 at the end.
//
// The KL is log1p(B + C) - B, where B is the mean of delta under P and C is the mean of e^delta - 1
// - delta. The time depends on the instructions per (query, key) pair: 9 in AddPlain(), 17 in
// AddNear(). Trap: a hidden key has s = -inf and d = 0, so sums of s itself must skip it.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "export/cuda/attention_kl/attention_kl_params.h"
#include "export/cuda/attention_kl/attention_kl_rows.cuh"
#include "export/cuda/device/mma.cuh"  // Exp2

namespace oscar::kl {

constexpr float kLowest = -1e30f;  // finite: kLowest - kLowest = 0
// A tile's weights are relative to the maximum of earlier tiles. If their sum exceeds this, the
// maximum is updated.
constexpr float kLargeSum = 0x1p30f;

// Sums over the far keys of a row (KlField). They are kept in local memory, because few tiles have
// far keys.
struct FarSums {
  float max = kLowest, far = 0;  // `far` is relative to `max`
  float max_hat = kLowest, sum_hat = 0;
};

__device__ __forceinline__ void StoreFar(const FarSums& from, volatile FarSums& to) {
  to.max = from.max;
  to.far = from.far;
  to.max_hat = from.max_hat;
  to.sum_hat = from.sum_hat;
}

struct RowSums {
  float max = kLowest, sum = 0, delta = 0, curve = 0, error = 0, logit = 0, near = 0;
};

template <int kCount>
__device__ __forceinline__ void Softcap(const KlParams& p, float (&acc)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) acc[i] = p.softcap_out * tanhf(p.softcap_in * acc[i]);
}

// Replaces s^, the second half of acc, by d = s^ - s. Keeps s, the first half, but sets it to -inf
// for hidden keys. Adds the squares d^2 of each row to `error`.
template <bool kMasked, int kKeys>
__device__ __forceinline__ void Differences(const KlParams& p, const RowKeys& keys, int tile_key,
                                            int lane, float (&acc)[kKeys], float (&error)[2]) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    const int h = i / 2 % 2;
    float& d = acc[kKeys / 2 + i];
    d -= acc[i];
    if constexpr (kMasked) {
      const int key = tile_key + 8 * (i / 4) + 2 * (lane % 4) + i % 2, last = keys.last[h];
      const bool exact = IsExact(p, last, key);
      if (exact) d = 0;
      if (key > last || key < FirstVisible(p, last) || (exact && p.skip_exact)) {
        d = 0;
        acc[i] = -INFINITY;
      }
    }
    error[h] = fmaf(d, d, error[h]);
  }
}

// Calls Differences, and sums s^2 if requested.
template <int kKeys>
__device__ __forceinline__ void TileDifferences(const KlParams& p, const RowKeys& keys,
                                                int tile_key, int lane, float (&acc)[kKeys],
                                                float (&error)[2], RowSums (&rows)[2]) {
  if (tile_key >= keys.plain_begin && tile_key + kKeys <= keys.plain_end)
    Differences<false>(p, keys, tile_key, lane, acc, error);
  else
    Differences<true>(p, keys, tile_key, lane, acc, error);
  if (p.want_logit_sq) {
    float logit[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i)
      if (acc[i] != -INFINITY) logit[i / 2 % 2] = fmaf(acc[i], acc[i], logit[i / 2 % 2]);
    rows[0].logit += logit[0];
    rows[1].logit += logit[1];
  }
  rows[0].error += error[0];
  rows[1].error += error[1];
}

template <int kKeys>
__device__ __forceinline__ void TileMax(const float (&acc)[kKeys], float (&max)[2]) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) max[i / 2 % 2] = fmaxf(max[i / 2 % 2], acc[i]);
}
template <int kKeys>
__device__ __forceinline__ void TileMaxHat(const float (&acc)[kKeys], float (&max_hat)[2]) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i)
    max_hat[i / 2 % 2] = fmaxf(max_hat[i / 2 % 2], acc[i] + acc[kKeys / 2 + i]);
}

template <int kTerms>
__device__ __forceinline__ float Polynomial(const float (&terms)[kTerms], float d) {
  float y = terms[kTerms - 1];
#pragma unroll
  for (int k = kTerms - 2; k >= 0; --k) y = fmaf(y, d, terms[k]);
  return y;
}

// The sums of one tile; see KlField.
struct TileSums {
  float sum = 0, delta = 0, curve = 0, near = 0;
  float far = 0, sum_hat = 0;
};

// Sums a tile with the polynomial. Requires |delta| <= 2 for every key.
template <int kKeys>
__device__ __forceinline__ void AddNear(const KlParams& p, const float (&acc)[kKeys],
                                        const RowSums (&rows)[2], TileSums (&tile)[2]) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    TileSums& t = tile[i / 2 % 2];
    const float d = acc[kKeys / 2 + i];
    const float e = Exp2(fmaf(acc[i], p.scale_log2, -rows[i / 2 % 2].max));
    const float ed = e * d;
    t.sum += e;
    t.delta += ed;
    t.curve = fmaf(ed * d, Polynomial(p.near_curve, d), t.curve);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h)
    tile[h].near = fmaf(tile[h].delta, p.scale, tile[h].sum) + tile[h].curve;
}

// Sums a tile with e^delta itself, and e^delta - 1 - delta as a difference of sums. Requires
// |delta| <= 40 and a root mean square of at least 0.1, so that the difference keeps its digits.
template <int kKeys>
__device__ __forceinline__ void AddPlain(const KlParams& p, const float (&acc)[kKeys],
                                         const RowSums (&rows)[2], TileSums (&tile)[2]) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    TileSums& t = tile[i / 2 % 2];
    const float d = acc[kKeys / 2 + i];
    const float e = Exp2(fmaf(acc[i], p.scale_log2, -rows[i / 2 % 2].max));
    t.sum += e;
    t.delta = fmaf(e, d, t.delta);
    t.near = fmaf(e, Exp2(d * p.scale_log2), t.near);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h)
    tile[h].curve = fmaf(tile[h].delta, -p.scale, tile[h].near - tile[h].sum);
}

// Sums a tile with any delta. Keys with |delta| above 2 are summed relative to max_hat. With
// kWeights it also stores the weights e and 2^(scaled s^ - max_hat) in acc, and adds the latter to
// weight_hat.
template <bool kWeights, int kKeys>
__device__ __forceinline__ void AddFar(const KlParams& p, float (&acc)[kKeys],
                                       const RowSums (&rows)[2], const float (&max_hat)[2],
                                       TileSums (&tile)[2], float (&weight_hat)[2]) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    const int h = i / 2 % 2;
    TileSums& t = tile[h];
    const float d = acc[kKeys / 2 + i];
    const float e = Exp2(fmaf(acc[i], p.scale_log2, -rows[h].max));
    const float e_hat = Exp2(fmaf(acc[i] + d, p.scale_log2, -max_hat[h]));
    const float ed = e * d;
    const float linear = fmaf(ed, p.scale, e);
    const float curve = ed * d * Polynomial(p.near_curve, d);
    t.sum += e;
    t.delta += ed;
    if (fabsf(d) > p.near) {
      t.sum_hat += e_hat;
      t.far += linear;
    } else {
      t.near += linear + curve;
      t.curve += curve;
    }
    if constexpr (kWeights) {
      acc[i] = e;
      acc[kKeys / 2 + i] = e_hat;
      weight_hat[h] += e_hat;
    }
  }
}

// Makes a row's sums relative to `max` (log2 units). Returns the factor by which they changed.
__device__ __forceinline__ float Rescale(RowSums& row, float max) {
  const float decay = Exp2(row.max - max);
  row.max = max;
  row.sum *= decay;
  row.delta *= decay;
  row.curve *= decay;
  row.near *= decay;
  return decay;
}

template <int kKeys>
__device__ __forceinline__ void RaiseMax(const KlParams& p, const float (&acc)[kKeys],
                                         RowSums (&rows)[2]) {
  float max[2] = {kLowest, kLowest};
  TileMax(acc, max);
#pragma unroll
  for (int h = 0; h < 2; ++h) Rescale(rows[h], fmaxf(rows[h].max, max[h] * p.scale_log2));
}

__device__ __forceinline__ void Accumulate(RowSums& row, const TileSums& tile) {
  row.sum += tile.sum;
  row.delta += tile.delta;
  row.curve += tile.curve;
  row.near += tile.near;
}

__device__ __forceinline__ void AccumulateFar(FarSums& far, const TileSums& tile, float max,
                                              float max_hat) {
  far.far = fmaf(far.far, Exp2(far.max - max), tile.far);
  far.sum_hat = fmaf(far.sum_hat, Exp2(far.max_hat - max_hat), tile.sum_hat);
  far.max = max;
  far.max_hat = max_hat;
}

// Adds a tile to the sums of a thread's two rows. `tile_key`: position of its first key.
template <int kKeys>
__device__ __forceinline__ void AddTile(const KlParams& p, const RowKeys& keys, int tile_key,
                                        int lane, float (&acc)[kKeys], RowSums (&rows)[2],
                                        volatile FarSums (&far_memory)[2]) {
  constexpr unsigned kAll = 0xFFFFFFFFu;
  float error[2] = {0, 0};
  TileDifferences(p, keys, tile_key, lane, acc, error, rows);
  // Each sum has kKeys / 4 squares d^2, none of which exceeds the larger sum.
  const float most = fmaxf(error[0], error[1]), least = fminf(error[0], error[1]);
  const bool plain = __all_sync(kAll, least >= kKeys / 4 * p.plain_sq && most <= p.far_sq);
  if (plain || __all_sync(kAll, most <= p.near_sq)) {
    while (true) {
      Hold(acc);  // keeps no values for a second try, because registers are full
      TileSums tile[2];
      if (plain)
        AddPlain(p, acc, rows, tile);
      else
        AddNear(p, acc, rows, tile);
      if (!__any_sync(kAll, fmaxf(tile[0].sum, tile[1].sum) > kLargeSum)) {
        Accumulate(rows[0], tile[0]);
        Accumulate(rows[1], tile[1]);
        return;
      }
      RaiseMax(p, acc, rows);
    }
  }
  RaiseMax(p, acc, rows);
  TileSums tile[2];
  float max_hat[2] = {kLowest, kLowest}, unused[2];
  TileMaxHat(acc, max_hat);
  FarSums far[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    far[h] = {far_memory[h].max, far_memory[h].far, far_memory[h].max_hat, far_memory[h].sum_hat};
    max_hat[h] = fmaxf(far[h].max_hat, max_hat[h] * p.scale_log2);
  }
  AddFar<false>(p, acc, rows, max_hat, tile, unused);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    Accumulate(rows[h], tile[h]);
    AccumulateFar(far[h], tile[h], rows[h].max, max_hat[h]);
    StoreFar(far[h], far_memory[h]);
  }
}

// Sums of a row in float64, merged from parts with different maxima. Merging in a fixed order
// always gives the same bits.
struct MergedSums {
  double max = kLowest, sum = 0, delta = 0, curve = 0, error = 0, logit = 0;
  double near = 0, far = 0, max_hat = kLowest, sum_hat = 0;

  __device__ void Merge(const MergedSums& other) {
    const double top = fmax(max, other.max), a = exp2(max - top), b = exp2(other.max - top);
    const double top_hat = fmax(max_hat, other.max_hat);
    sum = sum * a + other.sum * b;
    delta = delta * a + other.delta * b;
    curve = curve * a + other.curve * b;
    near = near * a + other.near * b;
    far = far * a + other.far * b;
    sum_hat = sum_hat * exp2(max_hat - top_hat) + other.sum_hat * exp2(other.max_hat - top_hat);
    error += other.error;
    logit += other.logit;
    max = top;
    max_hat = top_hat;
  }
};

__device__ __forceinline__ double Exchange(double x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, x, mask);
}

// Merges the four lanes of a row.
__device__ __forceinline__ MergedSums MergeQuad(const RowSums& row, const FarSums& far) {
  const double far_sum = far.far * exp2(static_cast<double>(far.max) - row.max);
  MergedSums m{row.max,   row.sum,  row.delta, row.curve,   row.error,
               row.logit, row.near, far_sum,   far.max_hat, far.sum_hat};
  for (int mask = 1; mask <= 2; mask *= 2) {
    const MergedSums other{Exchange(m.max, mask),     Exchange(m.sum, mask),
                           Exchange(m.delta, mask),   Exchange(m.curve, mask),
                           Exchange(m.error, mask),   Exchange(m.logit, mask),
                           Exchange(m.near, mask),    Exchange(m.far, mask),
                           Exchange(m.max_hat, mask), Exchange(m.sum_hat, mask)};
    m.Merge(other);
  }
  return m;
}

__device__ __forceinline__ size_t PartialIndex(const KlParams& p, int field, int chunk, int head,
                                               int row) {
  return ((static_cast<size_t>(field) * p.num_chunks + chunk) * p.num_q_heads + head) * p.rows +
         row;
}

__device__ inline void StorePartials(const KlParams& p, int chunk, int kv_head, int warp_vrow,
                                     int lane, const RowSums (&rows)[2],
                                     const volatile FarSums (&far)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const MergedSums m =
        MergeQuad(rows[h], FarSums{far[h].max, far[h].far, far[h].max_hat, far[h].sum_hat});
    const int vrow = warp_vrow + lane / 4 + 8 * h;
    if (lane % 4 != 0 || vrow >= p.num_vrows) continue;
    const double fields[kFields] = {m.max,   m.sum,  m.delta, m.curve,   m.error,
                                    m.logit, m.near, m.far,   m.max_hat, m.sum_hat};
#pragma unroll
    for (int f = 0; f < kFields; ++f)
      p.partial[PartialIndex(p, f, chunk, kv_head * p.gqa_ratio + vrow % p.gqa_ratio,
                             vrow / p.gqa_ratio)] = static_cast<float>(fields[f]);
  }
}

}  // namespace oscar::kl
