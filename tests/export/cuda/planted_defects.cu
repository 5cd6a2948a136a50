// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with one deliberate defect for each tool of compute-sanitizer. tools/dev/gpu.sh runs them
// to check that every tool finds its defect. They are harmless only under the sanitizer.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr int kThreads = 64;

__global__ void WriteBeyondTheEnd(int* values) { values[threadIdx.x + 1] = 1; }

__global__ void ReadWhatAnotherWarpWrites(int* values) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  values[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];  // no barrier before this read
}

__global__ void ReadWhatNobodyWrote(const int* unset, int* values) {
  values[threadIdx.x] = unset[threadIdx.x];
}

__global__ void WaitForOthersThanItself(int* values) {
  if (threadIdx.x % 32 < 16) __syncwarp(0xFFFF0000U);  // lanes that are not in the mask
  values[threadIdx.x] = 1;
}

}  // namespace

int main(int argc, char** argv) {
  int *values = nullptr, *unset = nullptr;
  if (argc != 2 || cudaMalloc(&values, kThreads * sizeof(int)) != cudaSuccess ||
      cudaMalloc(&unset, kThreads * sizeof(int)) != cudaSuccess)
    return 2;
  const auto is = [&](const char* tool) { return std::strcmp(argv[1], tool) == 0; };
  if (is("memcheck")) WriteBeyondTheEnd<<<1, kThreads>>>(values);
  if (is("racecheck")) ReadWhatAnotherWarpWrites<<<1, kThreads>>>(values);
  if (is("initcheck")) ReadWhatNobodyWrote<<<1, kThreads>>>(unset, values);
  if (is("synccheck")) WaitForOthersThanItself<<<1, kThreads>>>(values);
  std::printf("%s: %s\n", argv[1], cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
