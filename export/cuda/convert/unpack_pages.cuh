// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Codes and metadata of single tokens in a record. Trap: one thread per value, for conversion and
// tests; the kernels that must be fast read whole planes instead.
#pragma once

#include <cuda_bf16.h>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

// Where a side's bytes lie in a record.
struct RecordSide {
  CacheSide side;
  CacheOrder order;
  int codes_offset, metadata_offset;
};

constexpr RecordSide KeysOfRecord(const CacheFormat& format) {
  return {format.k, CacheOrder::kKeys, KCodesOffset(format), KMetadataOffset(format)};
}
constexpr RecordSide ValuesOfRecord(const CacheFormat& format) {
  return {format.v, CacheOrder::kValues, VCodesOffset(format), VMetadataOffset(format)};
}

__device__ inline uint8_t* RecordOfToken(const CacheView& view, int request, int64_t token,
                                         int head) {
  const int64_t page =
      view.page_table[int64_t{request} * view.page_table_stride + token / view.format.page_tokens];
  const int64_t record = head * (view.format.page_tokens / kTileTokens) +
                         token % view.format.page_tokens / kTileTokens;
  return view.pages + page * PageBytes(view.format, view.num_kv_heads) +
         record * RecordBytes(view.format);
}

__device__ inline uint32_t PlaneCode(const uint8_t* plane, CacheOrder order, int dim,
                                     int plane_bits, int t, int d) {
  const CodePlace place = PlaceOfCode(order, dim, plane_bits, t, d);
  const auto word = *reinterpret_cast<const uint32_t*>(
      plane + WordByte(PlaneWords(dim, plane_bits), place.lane, place.word));
  return word >> place.bit & ((1U << plane_bits) - 1);
}

__device__ inline uint32_t RecordCode(const uint8_t* record, const RecordSide& s, int t, int d) {
  const uint8_t* low = record + s.codes_offset;
  uint32_t code = PlaneCode(low, s.order, s.side.dim, 2, t, d);
  if (s.side.bits > 2)
    code |= PlaneCode(low + PlaneBytes(s.side.dim, 2), s.order, s.side.dim, s.side.bits - 2, t, d)
            << 2;
  return code;
}

// Value `index` of a side's metadata.
__device__ inline float RecordMetadata(const uint8_t* record, const RecordSide& s,
                                       MetadataType type, int index) {
  const uint8_t* metadata = record + s.metadata_offset;
  return type == MetadataType::kFloat32
             ? reinterpret_cast<const float*>(metadata)[index]
             : __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(metadata)[index]);
}

}  // namespace oscar
