// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <string>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/reference/cache_reader.cuh"
#include "export/cuda/reference/unpack_pages.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Byte offsets of a side within a record.
struct RecordSide {
  PagedSide side;
  CacheOrder order;
  int codes_offset, metadata_offset;
};

constexpr RecordSide KeysOfRecord(const CacheFormat& format) {
  return {format.k, CacheOrder::kKeys, KCodesOffset(format), KMetadataOffset(format)};
}
constexpr RecordSide ValuesOfRecord(const CacheFormat& format) {
  return {format.v, CacheOrder::kValues, VCodesOffset(format), VMetadataOffset(format)};
}

// Grid: tokens, heads, sides. Threads loop over the values of a row.
__global__ void UnpackKernel(const __grid_constant__ CacheView view, int request, int64_t begin,
                             const __grid_constant__ UnpackedRows rows) {
  const int64_t token = begin + blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const bool keys = blockIdx.z == 0;
  const RecordSide s = keys ? KeysOfRecord(view.format) : ValuesOfRecord(view.format);
  const uint8_t* record = RecordOfToken(view, request, token, head);
  const int t = static_cast<int>(token % kTileTokens);
  const int64_t row = int64_t{blockIdx.x} * view.num_kv_heads + head;
  const int step = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);
  if (uint8_t* codes = keys ? rows.k_codes : rows.v_codes; codes != nullptr) {
    for (int i = first; i < s.side.dim; i += step)
      codes[row * s.side.dim + i] =
          static_cast<uint8_t>(RecordCode(record + s.codes_offset, s.side, s.order, t, i));
  }
  const int groups = GroupsPerRow(s.side);
  if (float* numbers = keys ? rows.k_scales_zeros : rows.v_scales_zeros; numbers != nullptr) {
    for (int i = first; i < 2 * groups; i += step)
      numbers[row * 2 * groups + i] = StoredNumber(record + s.metadata_offset, s.side,
                                                   view.format.metadata, t, i / 2, i % 2 == 1);
  }
}

}  // namespace

void UnpackPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                 const UnpackedRows& rows, cudaStream_t stream) {
  CheckCacheView(view);
  const int64_t held = int64_t{view.page_table_stride} * view.format.page_tokens;
  if (request < 0 || request >= view.num_requests || begin < 0 || num_tokens < 0 ||
      begin + num_tokens > held)
    throw UsageError("unpack: tokens " + std::to_string(begin) + " to " +
                     std::to_string(begin + num_tokens) + " of request " + std::to_string(request) +
                     "; the cache has " + std::to_string(view.num_requests) +
                     " requests of up to " + std::to_string(held) + " quantized tokens");
  if (num_tokens == 0) return;
  const dim3 grid(static_cast<unsigned>(num_tokens), static_cast<unsigned>(view.num_kv_heads), 2);
  UnpackKernel<<<grid, 64, 0, stream>>>(view, request, begin, rows);
  OSCAR_CUDA_CHECK_LAUNCH("UnpackKernel");
}

}  // namespace oscar
