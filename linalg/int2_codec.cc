// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/int2_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

template <typename T>
struct Affine {
  T scale;
  T zero;
};

// Family A1 over one group.
template <typename T>
Affine<T> FitAffine(std::span<const T> group) {
  const auto [min, max] = std::minmax_element(group.begin(), group.end());
  const T scale = std::max(*max - *min, static_cast<T>(kInt2MinRange)) / T{kInt2MaxCode};
  return {scale, -*min / scale};
}

// Clamped as a number, before the conversion: far outside [0, 3] the sum need not fit an integer.
template <typename T>
uint8_t Code(T x, const Affine<T>& affine) {
  const T t = std::trunc(x / affine.scale + affine.zero + T{0.5});
  return static_cast<uint8_t>(std::clamp(t, T{0}, T{kInt2MaxCode}));
}

template <typename T>
T Reconstruct(uint8_t code, const Affine<T>& affine) {
  return (static_cast<T>(code) - affine.zero) * affine.scale;
}

// Round to nearest even, as __float2bfloat16_rn; x is finite, the result may be infinite.
float RoundToBFloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

float Stored(float x, MetadataType type) {
  return type == MetadataType::kBFloat16 ? RoundToBFloat16(x) : x;
}

template <typename T>
void RequireFinite(std::span<const T> row, std::span<const T> group, const Affine<T>& affine) {
  const bool finite = std::all_of(group.begin(), group.end(), [](T x) { return std::isfinite(x); });
  if (finite && std::isfinite(affine.scale) && std::isfinite(affine.zero)) return;
  throw NumericalError(fmt::format(
      "INT2 row of {} values: a group of {} is not representable (scale {:g}, zero {:g}; {}); "
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
    const Affine<float> affine = FitAffine(group);
    const Affine<float> stored = {Stored(affine.scale, format.metadata),
                                  Stored(affine.zero, format.metadata)};
    RequireFinite(x, group, stored);
    for (size_t i = 0; i < group_size; ++i) codes[start + i] = Code(group[i], affine);
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
    y[i] = Reconstruct<float>(codes[i], {scales_zeros[2 * group], scales_zeros[2 * group + 1]});
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
T QuantizeDequantizeRow(std::span<const T> x, const Int2Format& format, const RowClip& clip,
                        std::span<T> y) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(x.size()), format.head_dim);
  OSCAR_CHECK_EQ(y.size(), x.size());
  const T threshold = ClipThreshold(x, clip.ratio, clip.method);
  if (y.data() != x.data()) std::copy(x.begin(), x.end(), y.begin());
  ClampRow(y, threshold);
  const auto group_size = static_cast<size_t>(format.quant_group_size);
  for (size_t start = 0; start < y.size(); start += group_size) {
    const auto group = y.subspan(start, group_size);
    const Affine<T> affine = FitAffine<T>(group);
    Affine<T> stored = affine;
    if constexpr (std::is_same_v<T, float>) {
      stored = {Stored(affine.scale, format.metadata), Stored(affine.zero, format.metadata)};
    }
    RequireFinite<T>(x, group, stored);
    for (T& value : group) value = Reconstruct(Code(value, affine), stored);
  }
  return threshold;
}

template float QuantizeDequantizeRow(std::span<const float>, const Int2Format&, const RowClip&,
                                     std::span<float>);
template double QuantizeDequantizeRow(std::span<const double>, const Int2Format&, const RowClip&,
                                      std::span<double>);

}  // namespace oscar
