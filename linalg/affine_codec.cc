// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/affine_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/scale_fit.h"

namespace oscar {
namespace {

template <typename T>
void RequireFinite(std::span<const T> row, std::span<const T> group, const AffineGroup<T>& affine) {
  const bool finite = std::all_of(group.begin(), group.end(), [](T x) { return std::isfinite(x); });
  if (finite && std::isfinite(affine.scale) && std::isfinite(affine.zero)) return;
  throw NumericalError(
      fmt::format("quantizing a row of {} values: a group of {} cannot be represented (scale {:g}, "
                  "zero {:g}; {}); expected finite values below about 1e30",
                  row.size(), group.size(), affine.scale, affine.zero,
                  finite ? "all values finite" : "the row contains NaN or Inf"));
}

// Calls group_done(first index, values to code, scale and zero used for coding, stored scale and
// zero) for every quantization group of `row`. Ranges are those of the values in `clipped`.
template <typename T, typename GroupDone>
void ForEachGroup(std::span<const T> row, std::span<const T> clipped, const AffineFormat& format,
                  GroupDone group_done) {
  OSCAR_CHECK(format.bits >= 1 && format.bits <= 8 && format.quant_group_size > 0);
  OSCAR_CHECK(format.metadata != MetadataType::kByte || format.bits <= kMaxFittedBits);
  OSCAR_CHECK_EQ(static_cast<int64_t>(row.size()) % format.quant_group_size, 0);
  const auto group_size = static_cast<size_t>(format.quant_group_size);
  for (size_t start = 0; start < row.size(); start += group_size) {
    const auto group = row.subspan(start, group_size),
               clipped_group = clipped.subspan(start, group_size);
    const auto range = RangeOf<T>(clipped_group, format.metadata, MaxCode(format.bits));
    RequireFinite<T>(row, group, StoredAffine(range, format.metadata, format.bits));
    const FittedGroup<T> fitted = FitScale<T>(group, range, format.bits, format.scales);
    const AffineGroup<T> stored = StoredAffine(fitted.stored, format.metadata, format.bits);
    RequireFinite<T>(row, group, stored);
    group_done(start, FitsScale(format.scales, format.bits) ? group : clipped_group,
               format.metadata == MetadataType::kByte ? stored : fitted.rounds, stored);
  }
}

void EncodeRow(std::span<const float> x, std::span<const float> clipped, const AffineFormat& format,
               std::span<uint8_t> codes, std::span<float> scales_zeros) {
  OSCAR_CHECK_EQ(codes.size(), x.size());
  OSCAR_CHECK_EQ(static_cast<int64_t>(scales_zeros.size()) * format.quant_group_size,
                 2 * static_cast<int64_t>(x.size()));
  ForEachGroup(x, clipped, format,
               [&](size_t start, auto group, const auto& rounds, const auto& stored) {
                 for (size_t i = 0; i < group.size(); ++i)
                   codes[start + i] = AffineCode(group[i], rounds, MaxCode(format.bits));
                 scales_zeros[2 * (start / group.size())] = stored.scale;
                 scales_zeros[2 * (start / group.size()) + 1] = stored.zero;
               });
}

constexpr std::pair<MetadataType, std::string_view> kMetadataNames[] = {
    {MetadataType::kFloat32, "f32"},
    {MetadataType::kBFloat16, "bf16"},
    {MetadataType::kByte, "byte"}};

}  // namespace

std::string_view MetadataTypeName(MetadataType type) {
  for (const auto& [known, name] : kMetadataNames)
    if (known == type) return name;
  OSCAR_CHECK(!"a metadata type without a name");
  return {};
}

MetadataType MetadataTypeFromName(std::string_view name) {
  for (const auto& [type, known] : kMetadataNames)
    if (known == name) return type;
  throw UsageError(
      fmt::format("{} is not a type of scales and zeros; expected f32, bf16 or byte", name));
}

void EncodeAffineRow(std::span<const float> x, const AffineFormat& format, std::span<uint8_t> codes,
                     std::span<float> scales_zeros) {
  EncodeRow(x, x, format, codes, scales_zeros);
}

float ClipAndEncodeAffineRow(std::span<const float> x, const AffineFormat& format,
                             const RowClip& clip, std::span<uint8_t> codes,
                             std::span<float> scales_zeros) {
  const float threshold = ClipThreshold(x, clip.ratio, clip.method);
  std::vector<float> clipped(x.begin(), x.end());
  ClampRow<float>(clipped, threshold);
  EncodeRow(x, clipped, format, codes, scales_zeros);
  return threshold;
}

void DecodeAffineRow(std::span<const uint8_t> codes, std::span<const float> scales_zeros,
                     const AffineFormat& format, std::span<float> y) {
  OSCAR_CHECK_EQ(codes.size(), y.size());
  OSCAR_CHECK_EQ(static_cast<int64_t>(scales_zeros.size()) * format.quant_group_size,
                 2 * static_cast<int64_t>(y.size()));
  const auto group_size = static_cast<size_t>(format.quant_group_size);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t group = i / group_size;
    y[i] = AffineValue<float>(codes[i], {scales_zeros[2 * group], scales_zeros[2 * group + 1]});
  }
}

template <typename T>
T QuantizeDequantizeAffineRow(std::span<const T> x, const AffineFormat& format, const RowClip& clip,
                              std::span<T> y) {
  OSCAR_CHECK_EQ(y.size(), x.size());
  const T threshold = ClipThreshold(x, clip.ratio, clip.method);
  std::vector<T> clipped(x.begin(), x.end());
  ClampRow<T>(clipped, threshold);
  const int max_code = MaxCode(format.bits);
  ForEachGroup<T>(x, clipped, format,
                  [&](size_t start, auto group, const auto& rounds, const auto& stored) {
                    for (size_t i = 0; i < group.size(); ++i)
                      y[start + i] = AffineValue(AffineCode(group[i], rounds, max_code), stored);
                  });
  return threshold;
}

template float QuantizeDequantizeAffineRow(std::span<const float>, const AffineFormat&,
                                           const RowClip&, std::span<float>);
template double QuantizeDequantizeAffineRow(std::span<const double>, const AffineFormat&,
                                            const RowClip&, std::span<double>);

}  // namespace oscar
