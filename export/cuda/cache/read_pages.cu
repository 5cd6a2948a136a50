// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/cache/read_pages.h"
#include "export/cuda/cache/record_values.cuh"
#include "export/cuda/device/cuda_check.h"

namespace oscar {
namespace {

// Grid: tokens, heads, sides. Threads loop over the values of a row.
template <typename T>
__global__ void ReadPagesKernel(const __grid_constant__ CacheView view, int request, int64_t begin,
                                T* k, T* v) {
  const int64_t token = begin + blockIdx.x;
  const int head = static_cast<int>(blockIdx.y), t = static_cast<int>(token % kTileTokens);
  const bool keys = blockIdx.z == 0;
  const CacheFormat& format = view.format;
  const PagedSide& side = keys ? format.k : format.v;
  const uint8_t* record = RecordOfToken(view, request, token, head);
  const uint8_t* planes = record + (keys ? KCodesOffset(format) : VCodesOffset(format));
  const uint8_t* metadata = record + (keys ? KMetadataOffset(format) : VMetadataOffset(format));
  T* row = (keys ? k : v) + (int64_t{head} * gridDim.x + blockIdx.x) * side.dim;
  for (int d = static_cast<int>(threadIdx.x); d < side.dim; d += static_cast<int>(blockDim.x)) {
    const int group = d / side.quant_group_size;
    const auto number = [&](bool zero) {
      return StoredNumber(metadata, side, format.metadata, t, group, zero);
    };
    const auto code = static_cast<float>(
        RecordCode(planes, side, keys ? CacheOrder::kKeys : CacheOrder::kValues, t, d));
    row[d] = T(__fmul_rn(__fsub_rn(code, number(true)), number(false)));
  }
}

}  // namespace

template <typename T>
void ReadPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens, T* k, T* v,
               cudaStream_t stream) {
  if (num_tokens == 0) return;
  const dim3 grid(static_cast<unsigned>(num_tokens), static_cast<unsigned>(view.num_kv_heads), 2);
  ReadPagesKernel<T><<<grid, 128, 0, stream>>>(view, request, begin, k, v);
  OSCAR_CUDA_CHECK_LAUNCH("ReadPagesKernel");
}

template void ReadPages(const CacheView&, int, int64_t, int64_t, float*, float*, cudaStream_t);
template void ReadPages(const CacheView&, int, int64_t, int64_t, __nv_bfloat16*, __nv_bfloat16*,
                        cudaStream_t);

}  // namespace oscar
