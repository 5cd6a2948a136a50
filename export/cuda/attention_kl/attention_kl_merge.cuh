// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Merges partial sums into the errors of every row, in float64 and in a fixed order. Skips chunks
// of keys that a tile of rows does not see, because their sums were never written.
#pragma once

#include "export/cuda/attention_kl/attention_kl.h"
#include "export/cuda/attention_kl/attention_kl_kernel.cuh"
#include "export/cuda/attention_kl/attention_kl_plan.h"

namespace oscar::kl {

constexpr double kLn2 = 0.693147180559945309417;

struct RowErrors {
  double kl, lse, lse_hat;
};

// Returns a row's KL and both log-sum-exps (LSE). LSE^ - LSE is log1p(B + C); if |B + C| is 0.5 or
// more, it is computed from the sums over s^.
__device__ inline RowErrors ErrorsOf(const MergedSums& m, double scale) {
  if (m.sum == 0) return {0, -INFINITY, -INFINITY};
  const double mean = m.delta * scale / m.sum;  // the term B
  const bool any_far = m.sum_hat > 0;
  const double gap = m.max_hat - m.max;  // in log2 units
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

// Grid: one CTA per kMergeRows rows of a query head.
__global__ void __launch_bounds__(kMergeRows)
    MergeRowsKernel(const __grid_constant__ KlParams p, const AttentionKlRows rows) {
  const int head = blockIdx.y, row = blockIdx.x * kMergeRows + threadIdx.x;
  if (row >= p.rows) return;
  const int first_vrow = (row * p.gqa_ratio + head % p.gqa_ratio) / p.tile_rows * p.tile_rows;
  MergedSums sums;
  for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
    const KeyRange range = KeysOf(p, first_vrow, chunk);
    if (range.begin >= range.end) continue;
    double fields[kFields];
    for (int f = 0; f < kFields; ++f) fields[f] = p.partial[PartialIndex(p, f, chunk, head, row)];
    sums.Merge({fields[kMax], fields[kSum], fields[kSumDelta], fields[kSumCurve], fields[kErrorSq],
                fields[kLogitSq], fields[kSumNear], fields[kSumFar], fields[kMaxHat],
                fields[kSumHat]});
  }
  RowErrors errors = ErrorsOf(sums, p.scale);
  const double scale_sq = static_cast<double>(p.scale) * p.scale;
  double logit_error_sq = sums.error * scale_sq, logit_sq = sums.logit * scale_sq;
  if (!InOrder(p, row)) {
    errors = {NAN, NAN, NAN};
    logit_error_sq = logit_sq = NAN;
  }
  const size_t at = static_cast<size_t>(head) * p.rows + row;
  if (rows.kl) rows.kl[at] = static_cast<float>(errors.kl);
  if (rows.lse) rows.lse[at] = static_cast<float>(errors.lse);
  if (rows.lse_hat) rows.lse_hat[at] = static_cast<float>(errors.lse_hat);
  if (rows.logit_error_sq) rows.logit_error_sq[at] = static_cast<float>(logit_error_sq);
  if (rows.logit_sq) rows.logit_sq[at] = static_cast<float>(logit_sq);
}

}  // namespace oscar::kl
