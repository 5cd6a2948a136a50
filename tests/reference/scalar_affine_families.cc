// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off: one rounding per operation.
#include "tests/reference/scalar_affine_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "linalg/affine_group.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The scale and zero that codes are computed with, and the offset that is stored with the scale.
template <typename T>
struct GroupFit {
  T scale;
  T zero;      // A1: real; A2: lo; A3, A4: integer
  T offset;    // stored
  bool empty;  // no range: every code is 0
};

template <typename T>
GroupFit<T> Fit(std::span<const T> group, const AffineRule& rule) {
  const int max_code = MaxCode(rule.bits);
  if (rule.family == AffineFamily::kRealZero) {
    const AffineGroup<T> affine = FitAffine<T>(group, max_code);
    return {affine.scale, affine.zero, affine.zero, false};
  }
  const auto [min, max] = std::minmax_element(group.begin(), group.end());
  T lo = *min, hi = *max;
  if (rule.include_zero) {
    lo = std::min(lo, T{0});
    hi = std::max(hi, T{0});
  }
  lo *= static_cast<T>(rule.clip_ratio);
  hi *= static_cast<T>(rule.clip_ratio);
  const bool integer_zero = rule.family != AffineFamily::kMinOffset;
  if (integer_zero && lo == 0 && hi == 0) {
    lo = -1;
    hi = 1;
  }
  const int divisor = rule.divisor == 0 ? max_code : rule.divisor;
  const T range = std::max(hi - lo, static_cast<T>(rule.min_range));
  const T scale = std::max(range / static_cast<T>(divisor), static_cast<T>(rule.min_scale));
  if (scale == 0) {  // A3 stores no lo, so lo becomes the scale: (0 + 1) lo
    if (rule.family == AffineFamily::kIntegerZero) return {lo, T{-1}, T{-1}, true};
    return {scale, lo, lo, true};
  }
  if (!integer_zero) return {scale, lo, lo, false};
  const T zero = std::nearbyint(-lo / scale);
  const T offset = rule.family == AffineFamily::kFusedZero ? -zero * scale : zero;
  return {scale, zero, offset, false};
}

template <typename T>
uint8_t Code(T x, const GroupFit<T>& fit, const AffineRule& rule) {
  if (fit.empty) return 0;
  T code = 0;
  switch (rule.family) {
    case AffineFamily::kRealZero:
      return AffineCode<T>(x, {fit.scale, fit.zero}, MaxCode(rule.bits));
    case AffineFamily::kMinOffset: {
      const T t = (x - fit.zero) / fit.scale;
      code = rule.rounding == CodeRounding::kHalfEven ? std::nearbyint(t) : std::floor(t + T{0.5});
      break;
    }
    case AffineFamily::kIntegerZero:
      code = std::nearbyint(x / fit.scale) + fit.zero;
      break;
    case AffineFamily::kFusedZero:
      code = std::nearbyint(x / fit.scale + fit.zero);
      break;
  }
  return static_cast<uint8_t>(std::clamp(code, T{0}, static_cast<T>(MaxCode(rule.bits))));
}

template <typename T>
T Value(uint8_t code, T scale, T offset, const AffineRule& rule) {
  const T q = static_cast<T>(code);
  switch (rule.family) {
    case AffineFamily::kRealZero:
    case AffineFamily::kIntegerZero:
      return (q - offset) * scale;
    case AffineFamily::kMinOffset:
    case AffineFamily::kFusedZero:
      return q * scale + offset;
  }
  OSCAR_CHECK(!"an AffineFamily without a value");
  return 0;
}

template <typename T>
void RequireFinite(std::span<const T> group, const GroupFit<T>& fit) {
  const bool finite = std::all_of(group.begin(), group.end(), [](T x) { return std::isfinite(x); });
  if (finite && std::isfinite(fit.scale) && std::isfinite(fit.offset)) return;
  throw NumericalError(fmt::format(
      "a quantization group of {} values is not representable (scale {:g}, offset {:g}; {}); "
      "expected finite values below about 1e30",
      group.size(), fit.scale, fit.offset,
      finite ? "all values finite" : "the row holds NaN or Inf"));
}

void CheckShapes(size_t dim, size_t codes, size_t numbers, const AffineRule& rule, int64_t group) {
  OSCAR_CHECK(rule.bits >= 1 && rule.bits <= 8 && group > 0);
  OSCAR_CHECK_EQ(codes, dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(dim) % group, 0);
  OSCAR_CHECK_EQ(static_cast<int64_t>(numbers) * group, 2 * static_cast<int64_t>(dim));
}

}  // namespace

template <typename T>
void EncodeAffineFamily(std::span<const T> x, const AffineRule& rule, int64_t quant_group_size,
                        std::span<uint8_t> codes, std::span<T> scales_offsets) {
  CheckShapes(x.size(), codes.size(), scales_offsets.size(), rule, quant_group_size);
  const auto group_size = static_cast<size_t>(quant_group_size);
  for (size_t start = 0; start < x.size(); start += group_size) {
    const auto group = x.subspan(start, group_size);
    const GroupFit<T> fit = Fit(group, rule);
    RequireFinite(group, fit);
    for (size_t i = 0; i < group_size; ++i) codes[start + i] = Code(group[i], fit, rule);
    scales_offsets[2 * (start / group_size)] = RoundTo(fit.scale, rule.metadata);
    scales_offsets[2 * (start / group_size) + 1] = RoundTo(fit.offset, rule.metadata);
  }
}

template <typename T>
void DecodeAffineFamily(std::span<const uint8_t> codes, std::span<const T> scales_offsets,
                        const AffineRule& rule, int64_t quant_group_size, std::span<T> y) {
  CheckShapes(y.size(), codes.size(), scales_offsets.size(), rule, quant_group_size);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t group = i / static_cast<size_t>(quant_group_size);
    y[i] = Value(codes[i], scales_offsets[2 * group], scales_offsets[2 * group + 1], rule);
  }
}

template void EncodeAffineFamily(std::span<const float>, const AffineRule&, int64_t,
                                 std::span<uint8_t>, std::span<float>);
template void EncodeAffineFamily(std::span<const double>, const AffineRule&, int64_t,
                                 std::span<uint8_t>, std::span<double>);
template void DecodeAffineFamily(std::span<const uint8_t>, std::span<const float>,
                                 const AffineRule&, int64_t, std::span<float>);
template void DecodeAffineFamily(std::span<const uint8_t>, std::span<const double>,
                                 const AffineRule&, int64_t, std::span<double>);

}  // namespace oscar
