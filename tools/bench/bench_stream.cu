// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/device/cuda_check.h"
#include "tools/bench/bench_stream.h"

namespace oscar {
namespace {

constexpr int kThreads = 256;  // per CTA
constexpr int kLoads = 4;      // loads in flight per thread

// Word i of buffer `set` is (i + set) * kStreamFactor, mod 2^32.
__global__ void FillKernel(uint4* data, int64_t size, uint32_t set) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += stride) {
    const uint32_t first = static_cast<uint32_t>(4 * i) + set;
    data[i] = make_uint4(first * kStreamFactor, (first + 1) * kStreamFactor,
                         (first + 2) * kStreamFactor, (first + 3) * kStreamFactor);
  }
}

__device__ uint32_t Sum(uint4 words) { return words.x + words.y + words.z + words.w; }

// CTAs per SM that the register count must allow. Chips of compute capability x.6, x.9 and 12.0
// hold 1,536 threads, all others 2,048.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ != 1000
constexpr int kCtasPerSm = 6;
#else
constexpr int kCtasPerSm = 8;
#endif

// data [size] -> sums [gridDim.x]: each is the sum of all words that the CTA read.
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    ReadKernel(const uint4* __restrict__ data, int64_t size, uint32_t* sums) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  uint32_t sum = 0;
  for (; i + (kLoads - 1) * stride < size; i += kLoads * stride) {
    uint4 words[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) words[load] = __ldcs(data + i + load * stride);
#pragma unroll
    for (int load = 0; load < kLoads; ++load) sum += Sum(words[load]);
  }
  for (; i < size; i += stride) sum += Sum(__ldcs(data + i));

  __shared__ uint32_t of_warp[kThreads / 32];
  sum = __reduce_add_sync(~0u, sum);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / 32; ++warp) sum += of_warp[warp];
    sums[blockIdx.x] = sum;
  }
}

}  // namespace

void LaunchFill(uint4* data, int64_t size, uint32_t set, int ctas, cudaStream_t stream) {
  FillKernel<<<ctas, kThreads, 0, stream>>>(data, size, set);
  OSCAR_CUDA_CHECK_LAUNCH("FillKernel");
}
void LaunchRead(const uint4* data, int64_t size, uint32_t* sums, int ctas, cudaStream_t stream) {
  ReadKernel<<<ctas, kThreads, 0, stream>>>(data, size, sums);
  OSCAR_CUDA_CHECK_LAUNCH("ReadKernel");
}

}  // namespace oscar
