// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One thread block processes a row. Its first pass over the logits finds their maximum and the sum
// of their exponentials; its second pass computes the requested results. In the second pass, each
// thread sums in T, and the sums of all threads are added in float64.
#include <cmath>

#include "calib/cache/cuda/logit_kernel.h"

namespace oscar {
namespace {

template <typename T>
struct Exponentials {
  T max, sum;  // sum of e^(x - max)
};

template <typename T>
__device__ Exponentials<T> Joined(const Exponentials<T>& a, const Exponentials<T>& b) {
  const T max = a.max < b.max ? b.max : a.max;
  return {max, a.sum * exp(a.max - max) + b.sum * exp(b.max - max)};
}

template <typename Value, typename Combine>
__device__ Value OfBlock(Value value, Combine combine) {
  __shared__ Value of_warps[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto of_warp = [&](Value own) {
    for (int offset = 16; offset > 0; offset /= 2) {
      Value other;
      if constexpr (requires { own.max; }) {
        other = {__shfl_xor_sync(0xFFFFFFFFU, own.max, offset),
                 __shfl_xor_sync(0xFFFFFFFFU, own.sum, offset)};
      } else {
        other = __shfl_xor_sync(0xFFFFFFFFU, own, offset);
      }
      own = combine(own, other);
    }
    return own;
  };
  value = of_warp(value);
  if (blockDim.x == 32) return value;
  __syncthreads();  // all threads have read the previous sum
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = of_warps[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) value = combine(value, of_warps[w]);
  return value;
}

template <typename T>
__device__ double SumOfBlock(T value) {
  return OfBlock(static_cast<double>(value), [](double a, double b) { return a + b; });
}

template <typename T>
__global__ void __launch_bounds__(256) Compare(const LogitComparisonArguments<T> a) {
  const int64_t row = blockIdx.x, reference = row % a.reference_rows;
  const int64_t columns = a.tokens + (a.sinks != nullptr ? 1 : 0);
  const T* const logits = a.logits + row * a.tokens;
  const T sink = a.sinks == nullptr ? T(0) : a.sinks[row / a.rows_per_head % a.num_heads];
  const auto logit = [&](int64_t i) { return i < a.tokens ? logits[i] : sink; };

  Exponentials<T> own = {-T(INFINITY), T(0)};
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const T x = logit(i);
    if (x > own.max) {
      own.sum = own.sum * exp(own.max - x) + T(1);
      own.max = x;
    } else {
      own.sum += exp(x - own.max);
    }
  }
  // A thread without a logit contributes nothing.
  if (own.max == -T(INFINITY) && own.sum == T(0)) own.max = T(-1e30);
  own = OfBlock(own, [](const auto& p, const auto& q) { return Joined(p, q); });
  const T log_sum = log(own.sum);

  const T* const log_p = a.log_p + reference * columns;
  const T* const p = a.p + reference * columns;
  constexpr T kFar = 40;  // as in calib/cache/logit_comparison.cc
  const T e_far = exp(kFar);
  T kl = 0, logit_errors_sq = 0;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const T x = logit(i), log_q = x - own.max - log_sum, q = exp(log_q);
    const T ratio = log_q - log_p[i];
    const T log_ratio = ratio > kFar ? kFar : ratio;  // keeps NaN
    const T far = q - e_far * p[i];
    const T term = (expm1(log_ratio) - log_ratio) * p[i] + (far < T(0) ? T(0) : far);
    kl += term;
    if (a.scores != nullptr) a.scores[row * columns + i] = q;
    if (a.kl_terms != nullptr) a.kl_terms[row * columns + i] = term;
    if (a.reference_logits != nullptr && i < a.tokens) {
      const T error = x - a.reference_logits[reference * a.tokens + i];
      logit_errors_sq += error * error;
    }
  }
  const double kl_sum = SumOfBlock(kl);
  if (threadIdx.x == 0) a.kl[row] = static_cast<T>(kl_sum);
  if (a.reference_logits == nullptr) return;
  const double error_sum = SumOfBlock(logit_errors_sq);
  if (threadIdx.x == 0) a.logit_errors_sq[row] = static_cast<T>(error_sum);
}

}  // namespace

template <typename T>
cudaError_t LaunchLogitComparison(const LogitComparisonArguments<T>& arguments,
                                  cudaStream_t stream) {
  if (arguments.rows == 0) return cudaSuccess;
  const int threads = arguments.tokens <= 256 ? 32 : arguments.tokens <= 1024 ? 128 : 256;
  Compare<<<static_cast<unsigned>(arguments.rows), threads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

template cudaError_t LaunchLogitComparison(const LogitComparisonArguments<float>&, cudaStream_t);
template cudaError_t LaunchLogitComparison(const LogitComparisonArguments<double>&, cudaStream_t);

}  // namespace oscar
