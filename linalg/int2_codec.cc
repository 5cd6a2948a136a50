// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/int2_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "linalg/affine_group.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

// Round to nearest even, as __float2bfloat16_rn; x is finite, the result may be infinite.
float RoundToBFloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

float Stored(float x, MetadataType type) {
  return type == MetadataType::kBFloat16 ? RoundToBFloat16(x) : x;
}

template <typename T>
void RequireFinite(std::span<const T> row, std::span<const T> group, const AffineGroup<T>& affine) {
  const bool finite = std::all_of(group.begin(), group.end(), [](T x) { return std::isfinite(x); });
  if (finite && std::isfinite(affine.scale) && std::isfinite(affine.zero)) return;
  throw NumericalError(fmt::format(
      "quantized row of {} values: a group of {} is not representable (scale {:g}, zero {:g}; {}); "
      "expected finite values below about 1e30",
      row.size(), group.size(), affine.scale, affine.zero,
      finite ? "all values finite" : "the row holds NaN or Inf"));
}

}  // namespace

void EncodeRow(std::span<const float> x, const Int2Format& format, std::span<uint8_t> packed,
               std::span<float> scales_zeros) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(x.size()), format.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(scales_zeros.size()), Int2MetadataValuesPerRow(format));
  const auto group_size = static_cast<size_t>(format.quant_group_size);
  std::vector<uint8_t> codes(x.size());
  for (size_t start = 0; start < x.size(); start += group_size) {
    const auto group = x.subspan(start, group_size);
    const AffineGroup<float> affine = FitAffine(group, kInt2MaxCode);
    const AffineGroup<float> stored = {Stored(affine.scale, format.metadata),
                                       Stored(affine.zero, format.metadata)};
    RequireFinite(x, group, stored);
    for (size_t i = 0; i < group_size; ++i)
      codes[start + i] = AffineCode(group[i], affine, kInt2MaxCode);
    scales_zeros[2 * (start / group_size)] = stored.scale;
    scales_zeros[2 * (start / group_size) + 1] = stored.zero;
  }
  PackCodes(codes, format, packed);
}

void DecodeRow(std::span<const uint8_t> packed, std::span<const float> scales_zeros,
               const Int2Format& format, std::span<float> y) {
  OSCAR_CHECK_EQ(static_cast<int64_t>(scales_zeros.size()), Int2MetadataValuesPerRow(format));
  std::vector<uint8_t> codes(y.size());
  UnpackCodes(packed, format, codes);
  const auto group_size = static_cast<size_t>(format.quant_group_size);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t group = i / group_size;
    y[i] = AffineValue<float>(codes[i], {scales_zeros[2 * group], scales_zeros[2 * group + 1]});
  }
}

void PackCodes(std::span<const uint8_t> codes, const Int2Format& format,
               std::span<uint8_t> packed) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(codes.size()), format.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(packed.size()), Int2PackedBytesPerRow(format));
  std::fill(packed.begin(), packed.end(), uint8_t{0});
  for (int64_t i = 0; i < format.head_dim; ++i) {
    OSCAR_CHECK_LE(int{codes[i]}, kInt2MaxCode);
    packed[Int2ByteOfElement(format, i)] |=
        static_cast<uint8_t>(codes[i] << Int2ShiftOfElement(format, i));
  }
}

void UnpackCodes(std::span<const uint8_t> packed, const Int2Format& format,
                 std::span<uint8_t> codes) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(codes.size()), format.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(packed.size()), Int2PackedBytesPerRow(format));
  for (int64_t i = 0; i < format.head_dim; ++i) {
    codes[i] = (packed[Int2ByteOfElement(format, i)] >> Int2ShiftOfElement(format, i)) & 3;
  }
}

template <typename T>
T QuantizeDequantizeAffineRow(std::span<const T> x, const AffineFormat& format, const RowClip& clip,
                              std::span<T> y) {
  OSCAR_CHECK(format.bits >= 1 && format.bits <= 8 && format.quant_group_size > 0);
  OSCAR_CHECK_EQ(static_cast<int64_t>(x.size()) % format.quant_group_size, 0);
  OSCAR_CHECK_EQ(y.size(), x.size());
  const int max_code = MaxCode(format.bits);
  const T threshold = ClipThreshold(x, clip.ratio, clip.method);
  if (y.data() != x.data()) std::copy(x.begin(), x.end(), y.begin());
  ClampRow(y, threshold);
  const auto group_size = static_cast<size_t>(format.quant_group_size);
  for (size_t start = 0; start < y.size(); start += group_size) {
    const auto group = y.subspan(start, group_size);
    const AffineGroup<T> affine = FitAffine<T>(group, max_code);
    AffineGroup<T> stored = affine;
    if constexpr (std::is_same_v<T, float>) {
      stored = {Stored(affine.scale, format.metadata), Stored(affine.zero, format.metadata)};
    }
    RequireFinite<T>(x, group, stored);
    for (T& value : group) value = AffineValue(AffineCode(value, affine, max_code), stored);
  }
  return threshold;
}

template <typename T>
T QuantizeDequantizeRow(std::span<const T> x, const Int2Format& format, const RowClip& clip,
                        std::span<T> y) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(x.size()), format.head_dim);
  return QuantizeDequantizeAffineRow(
      x, AffineFormat{kInt2Bits, format.quant_group_size, format.metadata}, clip, y);
}

template float QuantizeDequantizeAffineRow(std::span<const float>, const AffineFormat&,
                                           const RowClip&, std::span<float>);
template double QuantizeDequantizeAffineRow(std::span<const double>, const AffineFormat&,
                                            const RowClip&, std::span<double>);
template float QuantizeDequantizeRow(std::span<const float>, const Int2Format&, const RowClip&,
                                     std::span<float>);
template double QuantizeDequantizeRow(std::span<const double>, const Int2Format&, const RowClip&,
                                      std::span<double>);

}  // namespace oscar
