// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Column sums: a CTA reads the rows of one split of one KV head, threads side by side along a row
// and over neighbouring rows, then adds its rows in order; a second launch adds the splits in
// order.
#pragma once

#include "export/cuda/statistics/attention_rows.cuh"

namespace oscar {

inline constexpr int kColumnThreads = 256;

// Grid: splits, KV heads. partials [num_kv_heads, splits, dim].
template <RowType kType>
__global__ void __launch_bounds__(kColumnThreads)
    ColumnSumsKernel(const __grid_constant__ RowsView rows, int tokens_per_split,
                     double* partials) {
  __shared__ double sums[kColumnThreads][8 + 1];
  const int chunks = rows.dim / 8, lanes = kColumnThreads / chunks;
  const int lane = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
  const TokenRange tokens = TokensOfSplit(rows.num_tokens, tokens_per_split, blockIdx.x);
  double sum[8] = {};
  if (lane < lanes) {
    const int count = tokens.count * rows.gqa_ratio;
    const char* head = rows.data +
                       static_cast<int64_t>(blockIdx.y) * rows.gqa_ratio * rows.head_bytes +
                       tokens.first * rows.token_bytes + chunk * 8 * RowTypeBytes(kType);
#pragma unroll 4
    for (int row = lane; row < count; row += lanes) {
      const RawValues<kType> raw = LoadRaw<kType>(
          head + row / rows.gqa_ratio * rows.token_bytes + row % rows.gqa_ratio * rows.head_bytes,
          true);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = PairOf<kType>(raw, i);
        sum[2 * i] += pair.x;
        sum[2 * i + 1] += pair.y;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[threadIdx.x][i] = sum[i];
  __syncthreads();
  double* partial =
      partials + (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * rows.dim;
  for (int feature = threadIdx.x; feature < rows.dim; feature += kColumnThreads) {
    double total = 0;
    for (int i = 0; i < lanes; ++i) total += sums[i * chunks + feature / 8][feature % 8];
    partial[feature] = total;
  }
}

// Grid: KV heads.
__global__ void ColumnSumsReduceKernel(const double* partials, int dim, int splits, double* sums) {
  const double* partial = partials + static_cast<int64_t>(blockIdx.x) * splits * dim;
  for (int feature = threadIdx.x; feature < dim; feature += blockDim.x) {
    double total = 0;
#pragma unroll 8
    for (int split = 0; split < splits; ++split) total += partial[split * dim + feature];
    sums[blockIdx.x * dim + feature] += total;
  }
}

}  // namespace oscar
