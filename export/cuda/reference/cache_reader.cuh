// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One value of a cache, found by the tables of cache_format.h and cache_view.h and nothing else:
// what the fused kernels are checked against. Slow on purpose.
#pragma once

#include <cuda_fp16.h>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

__device__ inline uint32_t PlaneBits(const uint8_t* plane, CacheOrder order, int dim, int bits,
                                     int token, int d) {
  const CodePlace place = PlaceOfCode(order, dim, bits, token, d);
  const uint32_t word = *reinterpret_cast<const uint32_t*>(
      plane + WordByte(PlaneWords(dim, bits), place.lane, place.word));
  return word >> place.bit & ((1U << bits) - 1);
}

// Scale or zero of a token's group.
__device__ inline float StoredNumber(const uint8_t* metadata, const PagedSide& side,
                                     MetadataType type, int token, int group, bool zero) {
  const int index = MetadataIndex(side, type, token, group) + (zero ? 1 : 0);
  if (type == MetadataType::kFloat32) return reinterpret_cast<const float*>(metadata)[index];
  if (type == MetadataType::kBFloat16)
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(metadata)[index]);
  if (zero)
    return static_cast<float>(static_cast<int8_t>(metadata[index])) /
               static_cast<float>(1 << (7 - side.bits)) +
           static_cast<float>((1 << side.bits) - 1) / 2;
  return __half2float(__ushort_as_half(static_cast<unsigned short>(metadata[index] << 7)));
}

// Value d of the key or value row of token `position` of a request.
__device__ inline double CacheValue(const CacheView& view, CacheOrder order, int request,
                                    int kv_head, int position, int d) {
  const CacheFormat& format = view.format;
  const bool keys = order == CacheOrder::kKeys;
  const PagedSide& side = keys ? format.k : format.v;
  const int i = position - view.sink_tokens;  // quantized or recent token
  if (i < 0 || i >= view.quantized[request]) {
    const int slot = i < 0 ? position : view.sink_tokens + i % view.recent_slots;
    const __nv_bfloat16* head =
        view.windows + (int64_t{view.window_of_request[request]} * view.num_kv_heads + kv_head) *
                           WindowHeadValues(view);
    if (!keys) head += int64_t{WindowSlots(view)} * format.k.dim;
    return __bfloat162float(head[int64_t{slot} * side.dim + d]);
  }
  const int page = view.page_table[request * view.page_table_stride + i / format.page_tokens];
  const int tile = i % format.page_tokens / kTileTokens, token = i % kTileTokens;
  const uint8_t* record =
      view.pages + page * PageBytes(format, view.num_kv_heads) +
      int64_t{kv_head * (format.page_tokens / kTileTokens) + tile} * RecordBytes(format);
  const uint8_t* planes = record + (keys ? KCodesOffset(format) : VCodesOffset(format));
  uint32_t code = PlaneBits(planes, order, side.dim, 2, token, d);
  if (side.bits > 2)
    code |= PlaneBits(planes + PlaneBytes(side.dim, 2), order, side.dim, side.bits - 2, token, d)
            << 2;
  const uint8_t* metadata = record + (keys ? KMetadataOffset(format) : VMetadataOffset(format));
  const int group = d / side.quant_group_size;
  return (code - double{StoredNumber(metadata, side, format.metadata, token, group, true)}) *
         StoredNumber(metadata, side, format.metadata, token, group, false);
}

}  // namespace oscar
