// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/device/tensor_map.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "export/cuda/device/cuda_check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode FindEncode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  OSCAR_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                    cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess)
    throw ResourceError(
        "the CUDA driver has no cuTensorMapEncodeTiled; it "
        "must be 12.0 or newer");
  return reinterpret_cast<Encode>(function);
}

}  // namespace

bool HasWgmma() {
  int device = 0, major = 0, minor = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
}

CUtensorMap TensorMapOf(const __nv_bfloat16* data, int64_t tokens, int64_t heads, int64_t dim,
                        int box_tokens) {
  static const Encode encode = FindEncode();
  const auto u64 = [](int64_t x) { return static_cast<cuuint64_t>(x); };
  const cuuint64_t dims[3] = {u64(dim), u64(heads), u64(tokens)};
  const cuuint64_t strides[2] = {u64(2 * dim), u64(2 * dim * heads)};  // bytes
  const cuuint32_t box[3] = {64, 1, static_cast<cuuint32_t>(box_tokens)};
  const cuuint32_t steps[3] = {1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(data), dims,
             strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw ResourceError(fmt::format("cuTensorMapEncodeTiled of [{}, {}, {}] bf16: driver error {}",
                                    tokens, heads, dim, static_cast<int>(result)));
  return map;
}

}  // namespace oscar
