// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Picks and launches the instance of register_kernel.cuh for one dim; a .cu per dim includes it.
#pragma once

#include <algorithm>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/write/register_kernel.cuh"
#include "export/cuda/write/register_kernel.h"

namespace oscar {

template <int kDim, bool kTwoBits, bool kOneGroup, bool kRotated>
void LaunchRegisterPrefill(const WriteArguments& a, int first_side, int num_sides,
                           cudaStream_t stream) {
  const auto kernel = RegisterPrefillKernel<kDim, kTwoBits, kOneGroup, kRotated>;
  constexpr int kWarps = RegisterWarps(kDim);
  constexpr int bytes = RegisterSharedBytes(kDim, kRotated);
  int device = 0;
  int multiprocessors = 0;
  int resident = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  OSCAR_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  // Or the driver leaves too little for all CTAs that would fit.
  OSCAR_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared));
  OSCAR_CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 32 * kWarps, bytes));
  // As many CTAs as are resident, the same number for every head and side.
  const int heads = a.view.num_kv_heads * num_sides;
  const int groups = (a.tiles + kWarps - 1) / kWarps;
  const int ctas = std::clamp(multiprocessors * resident / heads, 1, groups);
  const dim3 grid(static_cast<unsigned>(ctas), static_cast<unsigned>(a.view.num_kv_heads),
                  static_cast<unsigned>(num_sides));
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(32 * kWarps);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = a.overlap_previous ? 1 : 0;
  OSCAR_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, a, first_side));
  OSCAR_CUDA_CHECK_LAUNCH("RegisterPrefillKernel");
}

template <int kDim, bool kTwoBits, bool kOneGroup>
void LaunchRegisterInstance(const WriteArguments& a, int first_side, int num_sides,
                            cudaStream_t stream) {
  if (a.quantized_before != nullptr) {
    const dim3 grid(static_cast<unsigned>(a.tiles),
                    static_cast<unsigned>(a.view.num_kv_heads * a.view.num_requests),
                    static_cast<unsigned>(num_sides));
    RegisterFlushKernel<kDim, kTwoBits, kOneGroup><<<grid, 32, 0, stream>>>(a, first_side);
    OSCAR_CUDA_CHECK_LAUNCH("RegisterFlushKernel");
  } else if (a.sides[first_side].rotation != nullptr) {
    LaunchRegisterPrefill<kDim, kTwoBits, kOneGroup, true>(a, first_side, num_sides, stream);
  } else {
    LaunchRegisterPrefill<kDim, kTwoBits, kOneGroup, false>(a, first_side, num_sides, stream);
  }
}

template <int kDim>
void LaunchRegisterWrite(const WriteArguments& a, int first_side, int num_sides,
                         cudaStream_t stream) {
  const CacheSide& side = a.sides[first_side].side;
  const bool one_group = side.quant_group_size == kDim;
  const auto launch = side.bits == 2 ? (one_group ? LaunchRegisterInstance<kDim, true, true>
                                                  : LaunchRegisterInstance<kDim, true, false>)
                                     : (one_group ? LaunchRegisterInstance<kDim, false, true>
                                                  : LaunchRegisterInstance<kDim, false, false>);
  launch(a, first_side, num_sides, stream);
}

}  // namespace oscar
