// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The launch of one compiled instance. Each pair of head dims is a translation unit of its own
// (instances/), so that they compile beside each other. Trap: shared memory above 48 KB needs the
// attribute on every device.
#pragma once

#include "export/cuda/decode/decode_kernel.cuh"
#include "export/cuda/device/cuda_check.h"

namespace oscar {

template <class Shape>
void LaunchDecodeShape(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream) {
  constexpr int kBytes = DecodeSharedLayout<Shape>::kBytes;
  OSCAR_CUDA_CHECK(cudaFuncSetAttribute(DecodeKernel<Shape>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  DecodeKernel<Shape><<<grid, kDecodeThreads, kBytes, stream>>>(args);
  OSCAR_CUDA_CHECK_LAUNCH("decode attention");
}

template <int kK, int kV>
void LaunchDecode(const DecodeKernelArguments& args, bool general, dim3 grid, cudaStream_t stream) {
  if (general)
    LaunchDecodeShape<DecodeShape<kK, kV, true>>(args, grid, stream);
  else
    LaunchDecodeShape<DecodeShape<kK, kV, false>>(args, grid, stream);
}

}  // namespace oscar
