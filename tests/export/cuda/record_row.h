// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts one quantized row into a page record by the tables of cache_format.h, as kernels must write
// it and readers must find it. Bits of a plane that hold no code stay unchanged.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "export/cuda/cache/cache_format.h"
#include "linalg/affine_metadata.h"

namespace oscar {

inline void PutCode(uint8_t* plane, CacheOrder order, int dim, int plane_bits, int t, int d,
                    uint32_t code) {
  const CodePlace place = PlaceOfCode(order, dim, plane_bits, t, d);
  uint8_t* at = plane + WordByte(PlaneWords(dim, plane_bits), place.lane, place.word);
  uint32_t word = 0;
  std::memcpy(&word, at, 4);
  word = (word & ~(((1U << plane_bits) - 1) << place.bit)) | code << place.bit;
  std::memcpy(at, &word, 4);
}

// Puts codes [dim] and scales_zeros [2 * groups], as stored, at token t of the tile.
inline void PutRow(uint8_t* record, const CacheFormat& format, CacheOrder order, int t,
                   std::span<const uint8_t> codes, std::span<const float> scales_zeros) {
  const bool keys = order == CacheOrder::kKeys;
  const PagedSide& side = keys ? format.k : format.v;
  uint8_t* low = record + (keys ? KCodesOffset(format) : VCodesOffset(format));
  for (int d = 0; d < side.dim; ++d) {
    const uint32_t code = codes[static_cast<size_t>(d)];
    PutCode(low, order, side.dim, 2, t, d, code & 3);
    if (side.bits > 2)
      PutCode(low + PlaneBytes(side.dim, 2), order, side.dim, side.bits - 2, t, d, code >> 2);
  }
  uint8_t* metadata = record + (keys ? KMetadataOffset(format) : VMetadataOffset(format));
  for (int i = 0; i < 2 * GroupsPerRow(side); ++i) {
    const float value = scales_zeros[static_cast<size_t>(i)];
    const auto index = static_cast<size_t>(MetadataIndex(side, format.metadata, t, i / 2) + i % 2);
    if (format.metadata == MetadataType::kFloat32) {
      std::memcpy(metadata + 4 * index, &value, 4);
    } else if (format.metadata == MetadataType::kByte) {
      const float middle = static_cast<float>(MaxCode(side.bits)) / 2;
      metadata[index] =
          i % 2 == 1          ? static_cast<uint8_t>(static_cast<int8_t>(
                           (value - middle) * static_cast<float>(ScaleSteps(side.bits))))
          : std::isnan(value) ? uint8_t{0xFF}
                              : static_cast<uint8_t>(__half_as_ushort(__float2half(value)) >> 7);
    } else {
      const __nv_bfloat16 rounded = __float2bfloat16(value);
      std::memcpy(metadata + 2 * index, &rounded, 2);
    }
  }
}

}  // namespace oscar
