// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Second moments of attention rows on the tensor cores, one matrix per KV head: C_Q of queries,
// OᵀO of attention outputs, KᵀK, VᵀV and, with weights, the diagonal target Vᵀ diag(w) V. Sums in
// float64; the same bytes from run to run, stream to stream and GPU to GPU of one architecture,
// because how the tokens are split depends on the problem alone. The order of the additions
// is not that of calib/statistics_observer.h, so last bits differ from LibTorch's sums.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "export/cuda/statistics/attention_rows.h"

namespace oscar {

// How products are added up.
//   kFloat64        products and sums in float64 (DMMA): rows of any type
//   kBFloat16Split  bfloat16 and float16 rows as they are, float32 rows as three bfloat16 terms;
//                   products exact, float32 sums over kSplitRows rows at a time, float64 from there
//                   on. Relative to sqrt(G_ii G_jj), the error of G_ij is at most kSplitError.
enum class GramPrecision { kFloat64, kBFloat16Split };

// Rows of float32 sums. Tensor cores truncate rather than round (arXiv 2512.07004), so the error
// grows with the number of instructions, 16 rows each, and not with its root.
inline constexpr int kSplitRows = 1024;
// kSplitRows / 16 additions of at most 2^-22 (truncated sums of 17 aligned terms), and for float32
// rows what three terms leave out. Measured on an H200: at most 2e-6 over 30,000 tokens of
// Qwen3-8B's shape, normal, with a large mean or heavy tails; 4e-6 of float32 rows.
inline constexpr double kSplitError = 1.6e-5;

struct GramOptions {
  GramPrecision precision = GramPrecision::kFloat64;
  // [num_tokens, num_kv_heads] float64, device: each row counts so many times; null: once. With
  // kFloat64 only.
  const double* weights = nullptr;
};

// Bytes of workspace; its content does not matter before or after. 16-byte aligned.
size_t GramWorkspaceBytes(const AttentionRows& rows);

// sums += Σ w xᵀx over the tokens and the query heads of each KV head; sums
// [num_kv_heads, dim, dim] float64, device: both triangles. Throws UsageError naming what is not
// supported, and what is.
void AccumulateGram(const AttentionRows& rows, const GramOptions& options, double* sums,
                    void* workspace, cudaStream_t stream);

}  // namespace oscar
