// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads one code, scale or zero of a record, using only the tables of cache_format.h.
#pragma once

#include <cuda_bf16.h>
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

// Returns the scale or zero of a token's group.
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

// Returns the code of token t and dimension d from the planes of the keys or the values.
__device__ inline uint32_t RecordCode(const uint8_t* planes, const PagedSide& side,
                                      CacheOrder order, int t, int d) {
  uint32_t code = PlaneBits(planes, order, side.dim, 2, t, d);
  if (side.bits > 2)
    code |= PlaneBits(planes + PlaneBytes(side.dim, 2), order, side.dim, side.bits - 2, t, d) << 2;
  return code;
}

// Returns the record of a quantized token; `token` counts from 0 after the sinks.
__device__ inline uint8_t* RecordOfToken(const CacheView& view, int request, int64_t token,
                                         int head) {
  const int64_t page =
      view.page_table[int64_t{request} * view.page_table_stride + token / view.format.page_tokens];
  const int64_t record = head * (view.format.page_tokens / kTileTokens) +
                         token % view.format.page_tokens / kTileTokens;
  return view.pages + page * PageBytes(view.format, view.num_kv_heads) +
         record * RecordBytes(view.format);
}

}  // namespace oscar
