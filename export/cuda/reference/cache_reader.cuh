// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads one value of a cache, using only the tables of cache_format.h and cache_view.h, as the
// reference for the fused kernels. It is written for clarity, not for speed.
#pragma once

#include "export/cuda/cache/record_values.cuh"

namespace oscar {

// Returns value d of the key or value row of the token at `position` in a request.
__device__ inline double CacheValue(const CacheView& view, CacheOrder order, int request,
                                    int kv_head, int position, int d) {
  const CacheFormat& format = view.format;
  const bool keys = order == CacheOrder::kKeys;
  const PagedSide& side = keys ? format.k : format.v;
  const int i = position - view.sink_tokens;  // index among quantized and recent tokens
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
  const uint32_t code = RecordCode(planes, side, order, token, d);
  const uint8_t* metadata = record + (keys ? KMetadataOffset(format) : VMetadataOffset(format));
  const int group = d / side.quant_group_size;
  return (code - double{StoredNumber(metadata, side, format.metadata, token, group, true)}) *
         StoredNumber(metadata, side, format.metadata, token, group, false);
}

}  // namespace oscar
