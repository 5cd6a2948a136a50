// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches one compiled instance. Each pair of head dims has its own translation unit (instances/),
// so that these compile in parallel. Shared memory above 48 KB must be enabled on every device.
#pragma once

#include <string>

#include "export/cuda/decode/decode_kernel.cuh"
#include "export/cuda/device/cuda_check.h"
#include "linalg/base/error.h"

namespace oscar {

// Returns the bytes of shared memory per CTA, after checking that the GPU has them.
template <class Shape>
int SharedBytes(int record_bytes) {
  const int bytes = DecodeSharedLayout<Shape>::Bytes(record_bytes);
  int device = 0, most = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (bytes > most)
    throw UsageError("decode attention with head dims " + std::to_string(Shape::kK) + "/" +
                     std::to_string(Shape::kV) + " and records of " + std::to_string(record_bytes) +
                     " bytes needs " + std::to_string(bytes) +
                     " bytes of shared memory per CTA; this GPU has " + std::to_string(most));
  return bytes;
}

template <class Shape>
void LaunchDecodeShape(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream) {
  const int bytes = SharedBytes<Shape>(args.record_bytes);
  OSCAR_CUDA_CHECK(cudaFuncSetAttribute(DecodeKernel<Shape>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(kDecodeThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = args.call.overlap_previous ? 1 : 0;
  OSCAR_CUDA_CHECK(cudaLaunchKernelEx(&config, DecodeKernel<Shape>, args));
}

template <int kK, int kV, ScaleType kScales>
void LaunchTwoBits(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream) {
  constexpr bool kHasNarrow = kK % 64 == 0;
  if (kHasNarrow && args.heads_per_unit <= kNarrowUnitHeads)
    LaunchDecodeShape<DecodeShape<kK, kV, 2, 2, kScales, kHasNarrow>>(args, grid, stream);
  else
    LaunchDecodeShape<DecodeShape<kK, kV, 2, 2, kScales>>(args, grid, stream);
}

template <int kK, int kV>
void LaunchDecode(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream) {
  const CacheFormat& format = args.call.cache.format;
  if (NeedsGeneralDecode(format)) {
    LaunchDecodeShape<DecodeShape<kK, kV, 0, 0, ScaleType::kAny>>(args, grid, stream);
  } else if (format.metadata == MetadataType::kByte) {
    if constexpr (HasQuarters(kK) && HasQuarters(kV))
      LaunchTwoBits<kK, kV, ScaleType::kByteQuarters>(args, grid, stream);
  } else if (HasFastQuarters(format)) {
    if constexpr (kK == 128 && kV == 128)
      LaunchTwoBits<kK, kV, ScaleType::kFloat32Quarters>(args, grid, stream);
  } else if (format.metadata == MetadataType::kFloat32) {
    LaunchTwoBits<kK, kV, ScaleType::kFloat32>(args, grid, stream);
  } else {
    LaunchTwoBits<kK, kV, ScaleType::kBFloat16>(args, grid, stream);
  }
}

template <int kK, int kV, int kKBits>
void LaunchDecodeBits(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream) {
  switch (args.call.cache.format.v.bits) {
    case 2:
      return LaunchDecodeShape<DecodeShape<kK, kV, kKBits, 2, ScaleType::kFloat32>>(args, grid,
                                                                                    stream);
    case 3:
      return LaunchDecodeShape<DecodeShape<kK, kV, kKBits, 3, ScaleType::kFloat32>>(args, grid,
                                                                                    stream);
    default:
      return LaunchDecodeShape<DecodeShape<kK, kV, kKBits, 4, ScaleType::kFloat32>>(args, grid,
                                                                                    stream);
  }
}

}  // namespace oscar
