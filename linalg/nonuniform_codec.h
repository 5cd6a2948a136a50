// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of KVQuant's quantizers (arXiv 2401.18079; reference/methods.md 6.3): values are
// brought to [-1, 1] by a range and become the nearest of 2^b levels, k-means centroids or
// NormalFloat, or are quantized uniformly; what lies outside the range stays exact. Trap: keys are
// outliers strictly beyond their channel's range, values at or beyond their token's quantiles, and
// a token's range is not these quantiles but the extremes of what is left.
//
//   levels:   u = (y - o) / h,  o = (high + low) / 2,  h = (high - low) / 2
//             q = first level with the least |u - level|             y^ = value_q h + o
//   uniform:  a = m / (high - low),  z = low a,  m = 2^b - 1
//             q = clamp(HE(a y - z), 0, m)                           y^ = (q + z) / a
//
// A result that is NaN or infinite is read as 0, as published. One rounding per operation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace oscar {

struct NonuniformFormat {
  int bits = 2;
  // [2^bits] each: what u is compared with, and what it is read back as, which differs after
  // Q-Norm. Empty: uniform.
  std::vector<float> levels, values;
  bool integer_offset = false;  // uniform: z is rounded (HE) and clamped to [-m, 0]

  bool uniform() const { return levels.empty(); }
};

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

// Q-Norm: levels so moved and stretched that quantized values have the mean and standard deviation
// of the values themselves: c -> c s1 / s2 + (m1 - m2 s1 / s2). `before` and `after`: mean and
// (population) standard deviation. Unchanged where after.sigma is 0.
struct MeanAndSigma {
  double mean = 0, sigma = 0;
};
std::vector<float> QNormLevels(std::span<const float> levels, const MeanAndSigma& before,
                               const MeanAndSigma& after);

}  // namespace oscar
