// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/statistics/column_sums.h"
#include "export/cuda/statistics/column_sums_kernel.cuh"

namespace oscar {
namespace {

constexpr int kCtas = 528;  // four per SM of an H200; a constant, see gram.cu
constexpr int kMinTokensPerSplit = 64;

struct Cut {
  int splits, tokens_per_split;
};

Cut CutOf(const AttentionRows& rows) {
  const auto tokens = static_cast<int>(rows.num_tokens);
  const int wanted = std::max(kCtas / rows.num_kv_heads, 1);
  const int per_split = std::max((tokens + wanted - 1) / wanted, kMinTokensPerSplit);
  return {(tokens + per_split - 1) / per_split, per_split};
}

}  // namespace

size_t ColumnSumsWorkspaceBytes(const AttentionRows& rows) {
  CheckAttentionRows(rows);
  return sizeof(double) * rows.num_kv_heads * CutOf(rows).splits * rows.dim;
}

void AccumulateColumnSums(const AttentionRows& rows, double* sums, void* workspace,
                          cudaStream_t stream) {
  CheckAttentionRows(rows);
  if (rows.num_tokens == 0) return;
  const Cut cut = CutOf(rows);
  auto* partials = static_cast<double*>(workspace);
  WithRowType(rows.type, [&](auto type) {
    ColumnSumsKernel<type><<<dim3(cut.splits, rows.num_kv_heads), kColumnThreads, 0, stream>>>(
        ViewOf(rows), cut.tokens_per_split, partials);
  });
  OSCAR_CUDA_CHECK_LAUNCH("ColumnSumsKernel");
  ColumnSumsReduceKernel<<<rows.num_kv_heads, 128, 0, stream>>>(partials, rows.dim, cut.splits,
                                                                sums);
  OSCAR_CUDA_CHECK_LAUNCH("ColumnSumsReduceKernel");
}

}  // namespace oscar
