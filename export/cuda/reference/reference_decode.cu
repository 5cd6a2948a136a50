// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/device_array.h"
#include "export/cuda/reference/cache_reader.cuh"
#include "export/cuda/reference/reference_decode.h"

namespace oscar {
namespace {

constexpr int kThreads = 256;

template <class Combine>
__device__ double BlockReduce(double x, double* shared, const Combine& combine) {
  shared[threadIdx.x] = x;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  const double result = shared[0];
  __syncthreads();
  return result;
}

// Grid: one CTA per query head and request. scores: [num_requests, num_q_heads, max_length].
__global__ void ReferenceKernel(const DecodeArguments args, int num_q_heads, int max_length,
                                double* scores, double* out, double* spread, double* lse) {
  __shared__ double shared[kThreads];
  const CacheView& cache = args.cache;
  const int head = blockIdx.x, request = blockIdx.y;
  const int kv_head = head / (num_q_heads / cache.num_kv_heads);
  const int64_t row = int64_t{request} * num_q_heads + head;
  const int length = cache.lengths[request];
  const int first =
      args.rule.window > 0 && length > args.rule.window ? length - args.rule.window : 0;
  const __nv_bfloat16* q = args.q + row * cache.format.k.dim;
  double* score = scores + row * max_length;

  double top = args.attention_sinks != nullptr ? args.attention_sinks[head] : -INFINITY;
  for (int i = first + threadIdx.x; i < length; i += kThreads) {
    double s = 0;
    for (int d = 0; d < cache.format.k.dim; ++d)
      s += __bfloat162float(q[d]) * CacheValue(cache, CacheOrder::kKeys, request, kv_head, i, d);
    s *= args.rule.scale;
    if (args.rule.softcap > 0) s = args.rule.softcap * tanh(s / args.rule.softcap);
    score[i] = s;
    top = fmax(top, s);
  }
  top = BlockReduce(top, shared, [](double a, double b) { return fmax(a, b); });
  double sum = 0;
  for (int i = first + threadIdx.x; i < length; i += kThreads) {
    score[i] = exp(score[i] - top);
    sum += score[i];
  }
  sum = BlockReduce(sum, shared, [](double a, double b) { return a + b; });
  if (args.attention_sinks != nullptr) sum += exp(args.attention_sinks[head] - top);
  if (threadIdx.x == 0) lse[row] = sum > 0 ? top + log(sum) : -INFINITY;

  // Several threads share a dimension; each sums over some of the tokens.
  const int dims = cache.format.v.dim;
  const int parts = dims < kThreads ? kThreads / dims : 1;
  for (int base = 0; base < dims; base += kThreads / parts) {
    const int d = base + threadIdx.x % (kThreads / parts), part = threadIdx.x / (kThreads / parts);
    double x = 0, size = 0;
    if (d < dims && part < parts)
      for (int i = first + part; i < length; i += parts) {
        const double v = CacheValue(cache, CacheOrder::kValues, request, kv_head, i, d);
        x += score[i] * v;
        size += score[i] * fabs(v);
      }
    for (int which = 0; which < 2; ++which) {
      shared[threadIdx.x] = which == 0 ? x : size;
      __syncthreads();
      if (part == 0 && d < dims) {
        double total = 0;
        for (int p = 0; p < parts; ++p) total += shared[threadIdx.x + p * (kThreads / parts)];
        (which == 0 ? out : spread)[row * dims + d] = sum > 0 ? total / sum : 0;
      }
      __syncthreads();
    }
  }
}

}  // namespace

ReferenceDecode DecodeInFloat64(const DecodeArguments& arguments, int num_q_heads, int max_length,
                                cudaStream_t stream) {
  CheckCacheView(arguments.cache);
  const size_t rows = static_cast<size_t>(arguments.cache.num_requests) * num_q_heads;
  const size_t values = rows * arguments.cache.format.v.dim;
  const DeviceArray<double> scores(rows * max_length), out(values), spread(values), lse(rows);
  ReferenceKernel<<<dim3(num_q_heads, arguments.cache.num_requests), kThreads, 0, stream>>>(
      arguments, num_q_heads, max_length, scores.data(), out.data(), spread.data(), lse.data());
  OSCAR_CUDA_CHECK_LAUNCH("reference decode");
  OSCAR_CUDA_CHECK(cudaStreamSynchronize(stream));
  return {out.ToHost(), spread.ToHost(), lse.ToHost()};
}

}  // namespace oscar
