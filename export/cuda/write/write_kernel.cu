// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/tensor_map.h"
#include "export/cuda/write/register_kernel.h"
#include "export/cuda/write/write_kernel.cuh"
#include "export/cuda/write/write_kernel.h"

namespace oscar {
namespace {

int MaxSharedBytes() {
  int device = 0;
  int bytes = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes;
}

// Launches WriteKernel on sides [first, first + count).
void LaunchGeneric(const WriteArguments& a, int first, int count, int tiles, int rows_of_heads,
                   int max_warps, cudaStream_t stream) {
  const int limit = MaxSharedBytes();
  const SideArguments& side = a.sides[first];
  const bool feedback = side.feedback != nullptr;
  const auto kernel = feedback ? WriteKernel<true> : WriteKernel<false>;
  OSCAR_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
  const auto bytes = [&](int warps) {
    return WriteSharedBytes(side.side, warps, side.rotation != nullptr);
  };
  int warps = max_warps;
  while (warps > 1 && bytes(warps) > limit) warps /= 2;
  const dim3 grid(static_cast<unsigned>((tiles + warps - 1) / warps),
                  static_cast<unsigned>(rows_of_heads), static_cast<unsigned>(count));
  kernel<<<grid, 32 * warps, bytes(warps), stream>>>(a, first);
  OSCAR_CUDA_CHECK_LAUNCH("WriteKernel");
}

// Whether kernels other than WriteKernel support the keys or values: scales from the range, one
// clip ratio for all heads, float metadata, and groups of a multiple of 32 dims.
bool IsPlain(const SideArguments& side, MetadataType metadata) {
  return side.scales == ScaleFit::kRange && !side.clip_of_head && metadata != MetadataType::kByte &&
         side.side.quant_group_size % 32 == 0;
}

// Whether keys or values have 2-bit groups of 32 with fitted scales that are stored as bytes.
bool FitsBytes(const SideArguments& side, MetadataType metadata) {
  return side.scales != ScaleFit::kRange && metadata == MetadataType::kByte &&
         side.side.bits == 2 && side.side.quant_group_size == 32;
}

}  // namespace

void LaunchWrite(const WriteArguments& a, cudaStream_t stream) {
  const bool flush = a.quantized_before != nullptr;
  const SideArguments& k = a.sides[0];
  const SideArguments& v = a.sides[1];
  // One launch writes keys and values if they have the same shape.
  const bool same = k.side.dim == v.side.dim && k.side.bits == v.side.bits &&
                    k.side.quant_group_size == v.side.quant_group_size &&
                    (k.rotation != nullptr) == (v.rotation != nullptr) &&
                    (k.feedback != nullptr) == (v.feedback != nullptr);
  const int count = same ? 2 : 1;
  for (int first = 0; first < 2; first += count) {
    const PagedSide& side = a.sides[first].side;
    const bool rotated = a.sides[first].rotation != nullptr;
    const bool feedback = a.sides[first].feedback != nullptr;
    const bool plain = IsPlain(a.sides[first], a.view.format.metadata) &&
                       IsPlain(a.sides[first + count - 1], a.view.format.metadata);
    const bool fitted = FitsBytes(a.sides[first], a.view.format.metadata) &&
                        FitsBytes(a.sides[first + count - 1], a.view.format.metadata);
    const bool by_rows =
        fitted || (plain && feedback && side.bits == 2 && side.quant_group_size == side.dim);
    if (by_rows && rotated && !flush && side.dim == 128 && HasWgmma()) {
      LaunchRowPrefill128(a, first, count, stream);
    } else if (plain && !feedback && FitsRegisters(side.dim, rotated, MaxSharedBytes())) {
      const auto launch = side.dim == 64    ? LaunchRegisterWrite64
                          : side.dim == 128 ? LaunchRegisterWrite128
                          : side.dim == 192 ? LaunchRegisterWrite192
                                            : LaunchRegisterWrite256;
      launch(a, first, count, stream);
    } else {
      LaunchGeneric(a, first, count, a.tiles,
                    a.view.num_kv_heads * (flush ? a.view.num_requests : 1), flush ? 1 : 4, stream);
    }
  }
}

}  // namespace oscar
