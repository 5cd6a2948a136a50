// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the quantizers in linalg/nonuniform_codec.h, and quantiles of sorted values.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/nonuniform_codec.h"
#include "linalg/quantile.h"

namespace oscar {

// Returns a + fraction * (b - a), for the values a and b around the rank of q. One rounding per
// operation.
template <typename T>
T QuantileOfSorted(std::span<const T> sorted, double q) {
  const QuantileRank rank = RankOfQuantile(q, static_cast<int64_t>(sorted.size()));
  const T a = sorted[static_cast<size_t>(rank.lower)];
  if (rank.fraction == 0) return a;
  const T b = sorted[static_cast<size_t>(rank.lower) + 1];
  return a + static_cast<T>(rank.fraction) * (b - a);
}

// Returns the median, or the lower of the two middle values if their number is even.
template <typename T>
T LowerMedianOfSorted(std::span<const T> sorted) {
  OSCAR_CHECK(!sorted.empty());
  return sorted[(sorted.size() - 1) / 2];
}

// The range that values are quantized in.
template <typename T>
struct ValueRange {
  T low{}, high{};
};

// Returns what y reads back as, whether or not it lies in the range.
template <typename T>
T NonuniformValue(T y, const ValueRange<T>& range, const NonuniformFormat& format);

// Computes the round trip of one token's keys. Channel i has the range [low[i], high[i]], float16
// numbers. Values beyond it stay exact if `keep_outliers`; otherwise they become the outermost
// level.
template <typename T>
void RoundTripChannels(std::span<const T> y, std::span<const float> low,
                       std::span<const float> high, const NonuniformFormat& format,
                       bool keep_outliers, std::span<T> out);

// Computes the round trip of one token's values, with one range for all channels. If kept is 1,
// there are no outliers. Returns the number of outliers, which stay exact.
template <typename T>
int64_t RoundTripToken(std::span<const T> y, double kept, const NonuniformFormat& format,
                       std::span<T> out);

// Returns the thresholds of that token, its low and high quantile. `kept` is less than 1.
template <typename T>
ValueRange<T> TokenThresholds(std::span<const T> y, double kept);

}  // namespace oscar
