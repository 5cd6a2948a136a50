// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantizers of linalg/nonuniform_codec.h, one value at a time, and quantiles of sorted values.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/nonuniform_codec.h"
#include "linalg/quantile.h"

namespace oscar {

// a + fraction * (b - a) of the two neighbours of the rank, one rounding per operation.
template <typename T>
T QuantileOfSorted(std::span<const T> sorted, double q) {
  const QuantileRank rank = RankOfQuantile(q, static_cast<int64_t>(sorted.size()));
  const T a = sorted[static_cast<size_t>(rank.lower)];
  if (rank.fraction == 0) return a;
  const T b = sorted[static_cast<size_t>(rank.lower) + 1];
  return a + static_cast<T>(rank.fraction) * (b - a);
}

// The lower of the two middle values of an even count.
template <typename T>
T LowerMedianOfSorted(std::span<const T> sorted) {
  OSCAR_CHECK(!sorted.empty());
  return sorted[(sorted.size() - 1) / 2];
}

// The range of what is quantized.
template <typename T>
struct ValueRange {
  T low{}, high{};
};

// One value, whether or not it lies in the range.
template <typename T>
T NonuniformValue(T y, const ValueRange<T>& range, const NonuniformFormat& format);

// Keys: channel i of a token has the range low[i], high[i], float16 numbers. `keep_outliers`:
// values beyond it are exact, otherwise they become the outermost level.
template <typename T>
void RoundTripChannels(std::span<const T> y, std::span<const float> low,
                       std::span<const float> high, const NonuniformFormat& format,
                       bool keep_outliers, std::span<T> out);

// Values: the range of one token over all its channels; kept = 1: no outliers. Returns the number
// of outliers, which are exact.
template <typename T>
int64_t RoundTripToken(std::span<const T> y, double kept, const NonuniformFormat& format,
                       std::span<T> out);

// The thresholds of that token, low and high quantile. kept < 1.
template <typename T>
ValueRange<T> TokenThresholds(std::span<const T> y, double kept);

}  // namespace oscar
