// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/device/cuda_check.h"
#include "export/cuda/statistics/diagonal_weights.h"
#include "export/cuda/statistics/diagonal_weights_kernel.cuh"

namespace oscar {

void ComputeDiagonalWeights(const AttentionRows& keys, const double* covariance, double* weights,
                            cudaStream_t stream) {
  CheckKeyRows(keys);
  if (keys.num_tokens == 0) return;
  const auto ctas = static_cast<unsigned>((keys.num_tokens + kWeightTokens - 1) / kWeightTokens);
  DiagonalWeightsKernel<<<dim3(ctas, keys.num_kv_heads), 32 * kWeightWarps, 0, stream>>>(
      ViewOf(keys), covariance, weights);
  OSCAR_CUDA_CHECK_LAUNCH("DiagonalWeightsKernel");
}

void AccumulateWeightSums(const double* weights, int64_t num_tokens, int num_kv_heads, double* sums,
                          cudaStream_t stream) {
  WeightSumsKernel<<<num_kv_heads, kWeightSumThreads, 0, stream>>>(
      weights, static_cast<int>(num_tokens), num_kv_heads, sums);
  OSCAR_CUDA_CHECK_LAUNCH("WeightSumsKernel");
}

}  // namespace oscar
