// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// clang-format off
// INT2 rows as upstream's server stores them. One row = one token of one KV head, head_dim = d values y (rotated,
// clipped):
//
//   codes          uint8 [d / 4]: byte i = q[i] | q[i + d/4] << 2 | q[i + d/2] << 4 | q[i + 3d/4] << 6
//   scales_zeros   [2 d / quant_group_size]: scale_0, zero_0, scale_1, zero_1, ...
//
//   scale = max(max - min, 1e-8) / 3      zero = -min / scale      over quant_group_size neighbours
//   q = clamp(trunc(y / scale + zero + 0.5), 0, 3)                 y^ = (q - zero) * scale
//
// Codes come from the float32 scale and zero; y^ from the stored ones, which may be bfloat16.
// clang-format on
#pragma once

#include <cstdint>

#include "linalg/affine_codec.h"  // MetadataType

namespace oscar {

struct Int2Format {
  int64_t head_dim = 128;          // values per row
  int64_t quant_group_size = 128;  // values per scale and zero
  MetadataType metadata = MetadataType::kFloat32;
};

inline constexpr int kInt2Bits = 2;
inline constexpr int kInt2MaxCode = 3;
inline constexpr int64_t kInt2CodesPerByte = 4;

// Whether rows tile: head_dim a positive multiple of 4, and quant_group_size divides it.
constexpr bool IsValid(const Int2Format& format) {
  return format.head_dim > 0 && format.head_dim % kInt2CodesPerByte == 0 &&
         format.quant_group_size > 0 && format.head_dim % format.quant_group_size == 0;
}

constexpr int64_t Int2GroupsPerRow(const Int2Format& format) {
  return format.head_dim / format.quant_group_size;
}
constexpr int64_t Int2PackedBytesPerRow(const Int2Format& format) {
  return format.head_dim / kInt2CodesPerByte;
}
constexpr int64_t Int2MetadataValuesPerRow(const Int2Format& format) {  // scales and zeros
  return 2 * Int2GroupsPerRow(format);
}
constexpr int64_t Int2BytesPerRow(const Int2Format& format) {
  return Int2PackedBytesPerRow(format) +
         Int2MetadataValuesPerRow(format) * MetadataTypeBytes(format.metadata);
}

// Returns the byte of element i of a row: i mod d/4. Its bits begin at 2 * (i div d/4).
constexpr int64_t Int2ByteOfElement(const Int2Format& format, int64_t i) {
  return i % Int2PackedBytesPerRow(format);
}
constexpr int Int2ShiftOfElement(const Int2Format& format, int64_t i) {
  return static_cast<int>(2 * (i / Int2PackedBytesPerRow(format)));
}

}  // namespace oscar
