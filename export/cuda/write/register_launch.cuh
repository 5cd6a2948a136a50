// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Selects and launches the instance of register_kernel.cuh or pipelined_kernel.cuh for one dim. One
// .cu file per dim includes this header.
#pragma once

#include <algorithm>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/tensor_map.h"
#include "export/cuda/write/pipelined_kernel.cuh"
#include "export/cuda/write/register_kernel.cuh"
#include "export/cuda/write/register_kernel.h"

namespace oscar {

inline int Multiprocessors() {
  int device = 0;
  int count = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

template <class... Parameters>
void AllowSharedMemory(void (*kernel)(Parameters...), int bytes) {
  OSCAR_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  // By default the driver does not provide enough shared memory for all CTAs that would fit.
  OSCAR_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared));
}

// Launches `ctas` CTAs for each head and side.
template <class... Parameters, class... Arguments>
void LaunchPrefill(void (*kernel)(Parameters...), int ctas, int num_sides, int threads, int bytes,
                   cudaStream_t stream, const WriteArguments& a, const Arguments&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas), static_cast<unsigned>(a.view.num_kv_heads),
                        static_cast<unsigned>(num_sides));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = a.overlap_previous ? 1 : 0;
  OSCAR_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, a, arguments...));
  OSCAR_CUDA_CHECK_LAUNCH("write, prefill");
}

template <int kDim, bool kTwoBits, bool kOneGroup, bool kRotated>
void LaunchRegisterPrefill(const WriteArguments& a, int first_side, int num_sides,
                           cudaStream_t stream) {
  const auto kernel = RegisterPrefillKernel<kDim, kTwoBits, kOneGroup, kRotated>;
  constexpr int kThreads = 32 * RegisterWarps(kDim);
  constexpr int bytes = RegisterSharedBytes(kDim, kRotated);
  AllowSharedMemory(kernel, bytes);
  int resident = 0;
  OSCAR_CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, bytes));
  // Launches as many CTAs as are resident, with the same number for every head and side.
  const int groups = (a.tiles + RegisterWarps(kDim) - 1) / RegisterWarps(kDim);
  const int ctas =
      std::clamp(Multiprocessors() * resident / (a.view.num_kv_heads * num_sides), 1, groups);
  LaunchPrefill(kernel, ctas, num_sides, kThreads, bytes, stream, a, first_side);
}

template <int kDim, class Kernel>
void LaunchPipelinedPrefill(const WriteArguments& a, int first_side, int num_sides, Kernel kernel,
                            int threads, int bytes, cudaStream_t stream) {
  AllowSharedMemory(kernel, bytes);
  const int heads = a.view.num_kv_heads;
  PipelineMaps maps{};
  for (int side = first_side; side < first_side + num_sides; ++side) {
    const SideArguments& s = a.sides[side];
    maps.rows[side] = TensorMapOf(s.x, a.rows, heads, kDim, kTileTokens);
    maps.rotation[side] =
        TensorMapOf(s.rotation, s.rotation_stride != 0 ? heads * kDim : kDim, 1, kDim, kDim);
  }
  const int ctas = std::clamp(Multiprocessors() / (heads * num_sides), 1, (a.tiles + 3) / 4);
  LaunchPrefill(kernel, ctas, num_sides, threads, bytes, stream, a, maps, first_side);
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
    if constexpr (kDim == 128) {
      if (HasWgmma())
        return LaunchPipelinedPrefill<kDim>(a, first_side, num_sides,
                                            PipelinedPrefillKernel<kDim, kTwoBits, kOneGroup>,
                                            kPipelineThreads, PipelineShared<kDim>::kBytes, stream);
    }
    LaunchRegisterPrefill<kDim, kTwoBits, kOneGroup, true>(a, first_side, num_sides, stream);
  } else {
    LaunchRegisterPrefill<kDim, kTwoBits, kOneGroup, false>(a, first_side, num_sides, stream);
  }
}

template <int kDim>
void LaunchRegisterWrite(const WriteArguments& a, int first_side, int num_sides,
                         cudaStream_t stream) {
  const PagedSide& side = a.sides[first_side].side;
  const bool one_group = side.quant_group_size == kDim;
  const auto launch = side.bits == 2 ? (one_group ? LaunchRegisterInstance<kDim, true, true>
                                                  : LaunchRegisterInstance<kDim, true, false>)
                                     : (one_group ? LaunchRegisterInstance<kDim, false, true>
                                                  : LaunchRegisterInstance<kDim, false, false>);
  launch(a, first_side, num_sides, stream);
}

}  // namespace oscar
