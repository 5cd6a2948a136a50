// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// w = rowsum((K C) * K) with float64 matrix instructions: a warp takes 32 tokens of a KV head and
// 32 columns of C at a time. C is symmetric, so its rows serve as columns, and lane 4 g + t reads
// four neighbouring values, features 16 s + 4 t + j, of keys and of C alike: any order of the
// features will do, as long as both have the same.
#pragma once

#include "export/cuda/statistics/attention_rows.cuh"
#include "export/cuda/statistics/mma_float64.cuh"

namespace oscar {

inline constexpr int kWeightWarps = 4, kWeightWarpTokens = 32, kWeightColumns = 32;
inline constexpr int kWeightTokens = kWeightWarps * kWeightWarpTokens;  // per CTA

// kCount values, 2 or 4, of a row that begins at `row`.
template <int kCount>
__device__ inline void LoadFloat64(const char* row, RowType type, int feature,
                                   double (&values)[kCount]) {
  if (type == RowType::kFloat32) {
    float raw[kCount];
    if constexpr (kCount == 4) {
      reinterpret_cast<float4&>(raw) = __ldg(reinterpret_cast<const float4*>(row + 4 * feature));
    } else {
      reinterpret_cast<float2&>(raw) = __ldg(reinterpret_cast<const float2*>(row + 4 * feature));
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = raw[i];
    return;
  }
  uint32_t words[kCount / 2];
  if constexpr (kCount == 4) {
    reinterpret_cast<uint2&>(words) = __ldg(reinterpret_cast<const uint2*>(row + 2 * feature));
  } else {
    words[0] = __ldg(reinterpret_cast<const uint32_t*>(row + 2 * feature));
  }
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    float2 pair;
    if (type == RowType::kBFloat16) {
      pair = {__uint_as_float(words[i] << 16), __uint_as_float(words[i] & 0xffff0000u)};
    } else {
      pair = __half22float2(reinterpret_cast<const __half2&>(words[i]));
    }
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// Grid: ceil(num_tokens / kWeightTokens), KV heads.
__global__ void __launch_bounds__(32 * kWeightWarps)
    DiagonalWeightsKernel(const __grid_constant__ RowsView keys, const double* covariance,
                          double* weights) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int dim = keys.dim, head = blockIdx.y;
  const int first = blockIdx.x * kWeightTokens + threadIdx.x / 32 * kWeightWarpTokens;
  const double* c = covariance + static_cast<int64_t>(head) * dim * dim;
  const char* rows[2][2];  // tokens first + 16 m + 8 h + g; the last one where there are fewer
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int token = min(first + 16 * m + 8 * h + g, keys.num_tokens - 1);
      rows[m][h] = keys.data + head * keys.head_bytes + token * keys.token_bytes;
    }
  }

  double weight[2][2] = {};
  for (int n = 0; n < dim; n += kWeightColumns) {
    double product[2][4][4] = {};  // [16 tokens][8 columns]
    for (int k = 0; k < dim; k += 16) {
      const int feature = k + 4 * t;
      double a[2][2][4] = {};
      if (feature < dim) {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int h = 0; h < 2; ++h) LoadFloat64(rows[m][h], keys.type, feature, a[m][h]);
        }
      }
#pragma unroll
      for (int block = 0; block < kWeightColumns / 8; ++block) {
        const int column = n + 8 * block + g;
        double b[4] = {};
        if (feature < dim && column < dim) {
          const auto* values = reinterpret_cast<const double2*>(c + column * dim + feature);
          const double2 low = __ldg(values), high = __ldg(values + 1);
          b[0] = low.x, b[1] = low.y, b[2] = high.x, b[3] = high.y;
        }
#pragma unroll
        for (int m = 0; m < 2; ++m) MmaFloat64<4>(product[m][block], a[m], b);
      }
    }
#pragma unroll
    for (int block = 0; block < kWeightColumns / 8; ++block) {
      const int column = n + 8 * block + 2 * t;
      if (column >= dim) continue;
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          double key[2];
          LoadFloat64(rows[m][h], keys.type, column, key);
          weight[m][h] += product[m][block][2 * h] * key[0];
          weight[m][h] += product[m][block][2 * h + 1] * key[1];
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      double w = weight[m][h];
      w += __shfl_xor_sync(0xffffffffu, w, 1);
      w += __shfl_xor_sync(0xffffffffu, w, 2);
      const int token = first + 16 * m + 8 * h + g;
      if (t == 0 && token < keys.num_tokens)
        weights[static_cast<int64_t>(token) * keys.num_kv_heads + head] = w;
    }
  }
}

inline constexpr int kWeightSumThreads = 1024;

// Grid: KV heads.
__global__ void __launch_bounds__(kWeightSumThreads)
    WeightSumsKernel(const double* weights, int num_tokens, int num_kv_heads, double* sums) {
  __shared__ double partial[kWeightSumThreads];
  double sum = 0;
#pragma unroll 4
  for (int token = threadIdx.x; token < num_tokens; token += kWeightSumThreads)
    sum += weights[static_cast<int64_t>(token) * num_kv_heads + blockIdx.x];
  partial[threadIdx.x] = sum;
  for (int width = kWeightSumThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] += partial[0];
}

}  // namespace oscar
