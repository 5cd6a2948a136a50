// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the INT2 codec: what every kernel must match bit for bit. Trap: IEEE float32
// with one rounding per operation and no fused multiply-add, so this folder is compiled with
// -ffp-contract=off. Layout and formulas: int2_format.h.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/int2_format.h"
#include "linalg/percentile_clip.h"

namespace oscar {

// Quantizes one row x [head_dim], as it is: rotate and clip before. packed
// [Int2PackedBytesPerRow], scales_zeros [Int2MetadataValuesPerRow], already rounded to the format's
// metadata type. Throws NumericalError if x is not finite, or is so large (about 1e30) that a scale
// or zero overflows the metadata type.
void EncodeRow(std::span<const float> x, const Int2Format& format, std::span<uint8_t> packed,
               std::span<float> scales_zeros);

// The inverse, up to quantization: y [head_dim].
void DecodeRow(std::span<const uint8_t> packed, std::span<const float> scales_zeros,
               const Int2Format& format, std::span<float> y);

// codes [head_dim] of 0..3 to packed [head_dim / 4] and back.
void PackCodes(std::span<const uint8_t> codes, const Int2Format& format, std::span<uint8_t> packed);
void UnpackCodes(std::span<const uint8_t> packed, const Int2Format& format,
                 std::span<uint8_t> codes);

// Clips (ratio <= 0: not) and quantizes x [head_dim] and writes what a reader of the cache gets to
// y [head_dim]; y may be x. Returns the threshold. In float32 this equals ClampRow + EncodeRow +
// DecodeRow; in float64, for comparing methods, scale and zero are not rounded and the format's
// metadata type is ignored.
struct RowClip {
  double ratio = 0;
  ClipMethod method = ClipMethod::kSort;
};
template <typename T>
T QuantizeDequantizeRow(std::span<const T> x, const Int2Format& format, const RowClip& clip,
                        std::span<T> y);

// The same with codes of another width, whose packing is not defined here.
struct AffineFormat {
  int bits = 2;                    // 1 to 8
  int64_t quant_group_size = 128;  // divides the row
  MetadataType metadata = MetadataType::kFloat32;
};
template <typename T>
T QuantizeDequantizeAffineRow(std::span<const T> x, const AffineFormat& format, const RowClip& clip,
                              std::span<T> y);

}  // namespace oscar
