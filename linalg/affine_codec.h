// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the affine codecs of 1 to 8 bits (formulas: affine_group.h). Every kernel
// must produce the same codes bit for bit, however it packs them. Trap: arithmetic is IEEE float32
// with one rounding per operation and no fused multiply-add, so this folder is compiled with
// -ffp-contract=off.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "linalg/percentile_clip.h"

namespace oscar {

enum class MetadataType { kFloat32, kBFloat16, kByte };  // storage type of scales and zeros

// "f32", "bf16", "byte". FromName throws UsageError.
std::string_view MetadataTypeName(MetadataType type);
MetadataType MetadataTypeFromName(std::string_view name);

constexpr int64_t MetadataTypeBytes(MetadataType type) {
  return type == MetadataType::kFloat32 ? 4 : type == MetadataType::kBFloat16 ? 2 : 1;
}

// How a writer derives a group's scale and zero. Readers do not depend on it.
enum class ScaleFit {
  kRange,            // from the range of the clipped values, as published (affine_group.h)
  kUnbiased,         // fitted to the codes, which removes the shrinkage of rounding (scale_fit.h)
  kUnbiasedRounded,  // like kUnbiased, rounded once more: smaller error, almost no bias
};
inline constexpr int kMaxFittedBits = 4;  // with more bits the bias is negligible: kRange

// Returns whether scales are fitted. If so, scales are fitted to the unclipped values and these are
// coded; otherwise the clipped values are coded.
constexpr bool FitsScale(ScaleFit fit, int bits) {
  return fit != ScaleFit::kRange && bits <= kMaxFittedBits;
}

struct AffineFormat {
  int bits = 2;                    // 1 to 8
  int64_t quant_group_size = 128;  // divides the row length
  MetadataType metadata = MetadataType::kFloat32;
  ScaleFit scales = ScaleFit::kRange;
};

struct RowClip {
  double ratio = 0;  // <= 0: no clipping
  ClipMethod method = ClipMethod::kSort;
};

// Quantizes one row x [dim] without rotating or clipping it. Writes codes [dim] and scales_zeros [2
// dim / quant_group_size], already rounded to the format's metadata type. Throws NumericalError if
// x is not finite, or is so large (about 1e30) that a scale or zero overflows the metadata type.
void EncodeAffineRow(std::span<const float> x, const AffineFormat& format, std::span<uint8_t> codes,
                     std::span<float> scales_zeros);

// Clips x [dim], then calls EncodeAffineRow. Returns the threshold.
float ClipAndEncodeAffineRow(std::span<const float> x, const AffineFormat& format,
                             const RowClip& clip, std::span<uint8_t> codes,
                             std::span<float> scales_zeros);

// Decodes a row into y [dim].
void DecodeAffineRow(std::span<const uint8_t> codes, std::span<const float> scales_zeros,
                     const AffineFormat& format, std::span<float> y);

// Clips (unless ratio <= 0) and quantizes x [dim], and writes the dequantized values to y [dim]; y
// may be x. Returns the threshold. In float32 this equals ClipAndEncodeAffineRow followed by
// DecodeAffineRow. In float64, which is for comparing methods, it only rounds scales and zeros, and
// only to metadata types narrower than float32 (affine_metadata.h).
template <typename T>
T QuantizeDequantizeAffineRow(std::span<const T> x, const AffineFormat& format, const RowClip& clip,
                              std::span<T> y);

}  // namespace oscar
