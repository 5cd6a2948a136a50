// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From partial sums to the errors of every row, and from rows to heads, in float64 and in a fixed
// order. A chunk of keys that a tile of rows does not see was never written.
#pragma once

#include "export/cuda/attention_kl/attention_kl.h"
#include "export/cuda/attention_kl/attention_kl_kernel.cuh"
#include "export/cuda/attention_kl/attention_kl_plan.h"

namespace oscar::kl {

constexpr double kLn2 = 0.693147180559945309417;

struct RowErrors {
  double kl, lse, lse_hat;
};

// LSE^ - LSE = log1p(B + C), or, where that would cancel, from the sums of s^ themselves.
__device__ inline RowErrors ErrorsOf(const MergedSums& m, double scale) {
  const double mean = m.delta * scale / m.sum;  // B
  const bool any_far = m.sum_hat > 0;
  const double gap = m.max_hat - m.max;  // log2 units
  const double far = any_far ? m.sum_hat * exp2(gap) : 0;
  const double x = mean + (m.curve + far - m.far) / m.sum;
  double log_ratio;
  if (fabs(x) < 0.5) {
    log_ratio = log1p(x);
  } else {
    const double top = any_far ? fmax(gap, 0.0) : 0;
    const double sum_hat = m.near * exp2(-top) + (any_far ? m.sum_hat * exp2(gap - top) : 0);
    log_ratio = top * kLn2 + log(sum_hat) - log(m.sum);
  }
  const double lse = m.max * kLn2 + log(m.sum);
  return {log_ratio - mean, lse, lse + log_ratio};
}

__device__ inline bool InOrder(const KlParams& p, int row) {
  if (p.positions == nullptr) return true;
  const int64_t position = p.positions[row];
  return position >= 0 && position < p.tokens && (row == 0 || p.positions[row - 1] <= position) &&
         (row + 1 == p.rows || p.positions[row + 1] >= position);
}

__device__ inline double MaxOrNan(double a, double b) { return a > b || isnan(a) ? a : b; }

__device__ inline void AddHead(AttentionKlHead& a, const AttentionKlHead& b) {
  a.kl_sum += b.kl_sum;
  a.kl_sum_beyond += b.kl_sum_beyond;
  a.kl_max = MaxOrNan(a.kl_max, b.kl_max);
  a.output_error_sq += b.output_error_sq;
  a.output_sq += b.output_sq;
  a.output_error_sq_beyond += b.output_error_sq_beyond;
  a.output_sq_beyond += b.output_sq_beyond;
  a.logit_error_sq += b.logit_error_sq;
  a.logit_sq += b.logit_sq;
  a.rows += b.rows;
  a.rows_beyond += b.rows_beyond;
  a.pairs += b.pairs;
}

// Sum over the threads of a CTA, in a tree; the result is in shared[0].
__device__ inline void SumHeads(AttentionKlHead* shared, const AttentionKlHead& own) {
  shared[threadIdx.x] = own;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      AddHead(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
}

// One CTA per kMergeRows rows of a query head; parts [num_q_heads, gridDim.x].
__global__ void __launch_bounds__(kMergeRows)
    MergeRowsKernel(const __grid_constant__ KlParams p, int v_tiles, const AttentionKlRows rows,
                    AttentionKlHead* parts) {
  __shared__ AttentionKlHead shared[kMergeRows];
  const int head = blockIdx.y, row = blockIdx.x * kMergeRows + threadIdx.x;
  AttentionKlHead own{};
  if (row < p.rows) {
    const int first_vrow = (row * p.gqa_ratio + head % p.gqa_ratio) / p.tile_rows * p.tile_rows;
    MergedSums sums;
    for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
      const KeyRange range = KeysOf(p, first_vrow, chunk);
      if (range.begin >= range.end) continue;
      double fields[kFields];
      for (int f = 0; f < kFields; ++f) fields[f] = p.partial[PartialIndex(p, f, chunk, head, row)];
      sums.Merge({fields[kMax], fields[kSum], fields[kSumDelta], fields[kSumCurve],
                  fields[kErrorSq], fields[kLogitSq], fields[kSumNear], fields[kSumFar],
                  fields[kMaxHat], fields[kSumHat]});
    }
    RowErrors errors = ErrorsOf(sums, p.scale);
    const double scale_sq = static_cast<double>(p.scale) * p.scale;
    double logit_error_sq = sums.error * scale_sq, logit_sq = sums.logit * scale_sq;
    const size_t at = static_cast<size_t>(head) * p.rows + row;
    double output_error_sq = 0, output_sq = 0;
    for (int v = 0; v < v_tiles; ++v) {
      const size_t of = static_cast<size_t>(v) * p.num_q_heads * p.rows + at;
      output_error_sq += p.output_error_sq[of];
      output_sq += p.output_sq[of];
    }
    if (!InOrder(p, row)) {
      errors = {NAN, NAN, NAN};
      output_error_sq = output_sq = logit_error_sq = logit_sq = NAN;
    }
    if (rows.kl) rows.kl[at] = static_cast<float>(errors.kl);
    if (rows.lse) rows.lse[at] = static_cast<float>(errors.lse);
    if (rows.lse_hat) rows.lse_hat[at] = static_cast<float>(errors.lse_hat);
    if (rows.logit_error_sq) rows.logit_error_sq[at] = static_cast<float>(logit_error_sq);
    if (rows.logit_sq) rows.logit_sq[at] = static_cast<float>(logit_sq);
    if (rows.output_error_sq) rows.output_error_sq[at] = static_cast<float>(output_error_sq);
    if (rows.output_sq) rows.output_sq[at] = static_cast<float>(output_sq);

    const int position = RowPosition(p, row * p.gqa_ratio);
    const bool beyond = position >= static_cast<int64_t>(p.sink) + p.recent &&
                        !(p.window > 0 && p.recent >= p.window);
    own.kl_sum = own.kl_max = errors.kl;
    own.output_error_sq = output_error_sq;
    own.output_sq = output_sq;
    own.logit_error_sq = logit_error_sq;
    own.logit_sq = logit_sq;
    own.rows = 1;
    own.pairs = position - FirstVisible(p, position) + 1;
    if (beyond) {
      own.rows_beyond = 1;
      own.kl_sum_beyond = errors.kl;
      own.output_error_sq_beyond = output_error_sq;
      own.output_sq_beyond = output_sq;
    }
  }
  SumHeads(shared, own);
  if (threadIdx.x == 0) parts[static_cast<size_t>(head) * gridDim.x + blockIdx.x] = shared[0];
}

// One CTA per head.
__global__ void __launch_bounds__(kMergeRows)
    MergeHeadsKernel(const AttentionKlHead* parts, int count, AttentionKlHead* heads) {
  __shared__ AttentionKlHead shared[kMergeRows];
  AttentionKlHead own{};
  for (int i = threadIdx.x; i < count; i += kMergeRows)
    AddHead(own, parts[static_cast<size_t>(blockIdx.x) * count + i]);
  SumHeads(shared, own);
  if (threadIdx.x == 0) heads[blockIdx.x] = shared[0];
}

}  // namespace oscar::kl
