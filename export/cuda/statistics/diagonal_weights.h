// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of the diagonal value target Vᵀ diag(w) V: w_t = k_t C_Q k_tᵀ, what upstream's
// compute_kv_rotation.py calls sst. float64 on the tensor cores; same bytes as gram.h promises. The
// target itself is AccumulateGram of the values with these weights.
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/statistics/attention_rows.h"

namespace oscar {

// weights [num_tokens, num_kv_heads] = k C kᵀ; `keys` with one head per KV head; `covariance`
// [num_kv_heads, dim, dim], symmetric, device, 16-byte aligned. Throws UsageError naming what is
// not supported, and what is.
void ComputeDiagonalWeights(const AttentionRows& keys, const double* covariance, double* weights,
                            cudaStream_t stream);

// sums [num_kv_heads] += Σ weights [num_tokens, num_kv_heads].
void AccumulateWeightSums(const double* weights, int64_t num_tokens, int num_kv_heads, double* sums,
                          cudaStream_t stream);

}  // namespace oscar
