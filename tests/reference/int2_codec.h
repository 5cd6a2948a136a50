// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The INT2 codec as rows of bytes: the affine codec with 2 bits (affine_codec.h) in the quartered
// layout of int2_format.h. Pages of the CUDA cache pack the same codes in another order
// (export/cuda/cache/cache_format.h).
#pragma once

#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"  // RowClip
#include "tests/reference/int2_format.h"

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

// QuantizeDequantizeAffineRow with the bits, groups and metadata of `format`.
template <typename T>
T QuantizeDequantizeRow(std::span<const T> x, const Int2Format& format, const RowClip& clip,
                        std::span<T> y);

}  // namespace oscar
