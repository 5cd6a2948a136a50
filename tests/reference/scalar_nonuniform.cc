// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/scalar_nonuniform.h"

#include <algorithm>
#include <cmath>

#include "linalg/affine_group.h"  // MaxCode
#include "linalg/base/check.h"

namespace oscar {
namespace {

template <typename T>
T LevelValue(T y, const ValueRange<T>& range, const NonuniformFormat& format) {
  const T offset = (range.high + range.low) / T{2}, half = (range.high - range.low) / T{2};
  const T u = (y - offset) / half;
  size_t nearest = 0;  // stays 0 if u is NaN, for a range of no width
  T least = std::abs(u - static_cast<T>(format.levels[0]));
  for (size_t i = 1; i < format.levels.size(); ++i) {
    const T distance = std::abs(u - static_cast<T>(format.levels[i]));
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return static_cast<T>(format.values[nearest]) * half + offset;
}

// Here and below, adding zero turns -0 into +0, because a clamp or minimum may return either.
template <typename T>
T UniformValue(T y, const ValueRange<T>& range, const NonuniformFormat& format) {
  const T max_code = static_cast<T>(MaxCode(format.bits));
  const T a = max_code / (range.high - range.low);
  T z = range.low * a;
  if (format.integer_offset) z = std::clamp(std::nearbyint(z), -max_code, T{0}) + T{0};
  const T code = std::clamp(std::nearbyint(a * y - z), T{0}, max_code) + T{0};
  return (code + z) / a;
}

template <typename T>
std::vector<T> Sorted(std::span<const T> y) {
  std::vector<T> sorted(y.begin(), y.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

template <typename T>
ValueRange<T> ThresholdsOfSorted(std::span<const T> sorted, double kept) {
  const KeptQuantiles quantiles = QuantilesKeeping(kept);
  return {QuantileOfSorted(sorted, quantiles.low), QuantileOfSorted(sorted, quantiles.high)};
}

}  // namespace

template <typename T>
T NonuniformValue(T y, const ValueRange<T>& range, const NonuniformFormat& format) {
  const T value = format.uniform() ? UniformValue(y, range, format) : LevelValue(y, range, format);
  return std::isfinite(value) ? value : T{0};
}

template <typename T>
void RoundTripChannels(std::span<const T> y, std::span<const float> low,
                       std::span<const float> high, const NonuniformFormat& format,
                       bool keep_outliers, std::span<T> out) {
  OSCAR_CHECK(low.size() == y.size() && high.size() == y.size() && out.size() == y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const ValueRange<T> range = {static_cast<T>(low[i]), static_cast<T>(high[i])};
    const bool outlier = keep_outliers && (y[i] > range.high || y[i] < range.low);
    out[i] = outlier ? y[i] : NonuniformValue(y[i], range, format);
  }
}

template <typename T>
ValueRange<T> TokenThresholds(std::span<const T> y, double kept) {
  return ThresholdsOfSorted<T>(Sorted(y), kept);
}

template <typename T>
int64_t RoundTripToken(std::span<const T> y, double kept, const NonuniformFormat& format,
                       std::span<T> out) {
  OSCAR_CHECK_EQ(out.size(), y.size());
  const std::vector<T> sorted = Sorted(y);
  if (kept >= 1) {
    const ValueRange<T> range = {sorted.front() + T{0}, sorted.back() + T{0}};
    for (size_t i = 0; i < y.size(); ++i) out[i] = NonuniformValue(y[i], range, format);
    return 0;
  }
  const ValueRange<T> thresholds = ThresholdsOfSorted<T>(sorted, kept);
  const auto is_outlier = [&](T x) { return x >= thresholds.high || x <= thresholds.low; };
  const T median = LowerMedianOfSorted<T>(sorted);
  ValueRange<T> range = {is_outlier(y[0]) ? median : y[0], is_outlier(y[0]) ? median : y[0]};
  for (const T x : y) {
    const T inside = is_outlier(x) ? median : x;
    range = {std::min(range.low, inside), std::max(range.high, inside)};
  }
  range = {range.low + T{0}, range.high + T{0}};
  int64_t outliers = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (is_outlier(y[i])) ++outliers;
    out[i] = is_outlier(y[i]) ? y[i] : NonuniformValue(y[i], range, format);
  }
  return outliers;
}

#define OSCAR_NONUNIFORM(T)                                                              \
  template T NonuniformValue(T, const ValueRange<T>&, const NonuniformFormat&);          \
  template void RoundTripChannels(std::span<const T>, std::span<const float>,            \
                                  std::span<const float>, const NonuniformFormat&, bool, \
                                  std::span<T>);                                         \
  template int64_t RoundTripToken(std::span<const T>, double, const NonuniformFormat&,   \
                                  std::span<T>);                                         \
  template ValueRange<T> TokenThresholds(std::span<const T>, double)
OSCAR_NONUNIFORM(float);
OSCAR_NONUNIFORM(double);
#undef OSCAR_NONUNIFORM

}  // namespace oscar
