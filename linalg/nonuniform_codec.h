// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVQuant's quantizers (arXiv 2401.18079). Values are scaled to [-1, 1] by a range. They are then
// rounded to the nearest of 2^b levels (for example k-means centroids) or quantized uniformly.
// Outliers stay exact: keys strictly beyond the range of their channel, and values at or beyond the
// quantiles of their token. The range of a token is not between these quantiles; it consists of the
// extremes of the values that are not outliers.
//
//   levels:   u = (y - o) / h,  o = (high + low) / 2,  h = (high - low) / 2
//             q = first level with the smallest |u - level|          y^ = value_q h + o
//   uniform:  a = m / (high - low),  z = low a,  m = 2^b - 1
//             q = clamp(HE(a y - z), 0, m)                           y^ = (q + z) / a
//
// A result that is NaN or infinite is read as 0, as published. One rounding per operation.
#pragma once

#include <span>
#include <vector>

namespace oscar {

struct NonuniformFormat {
  int bits = 2;
  // Levels that u is compared with, and values that are read back, [2^bits] each. They differ after
  // Q-Norm. Both are empty for the uniform quantizer.
  std::vector<float> levels, values;
  bool integer_offset = false;  // uniform only: z is rounded (HE) and clamped to [-m, 0]

  bool uniform() const { return levels.empty(); }
};

// Q-Norm: shifts and scales the levels so that quantized values have the mean and standard
// deviation of the original values, c -> c s1 / s2 + (m1 - m2 s1 / s2). `before` holds the mean m1
// and the (population) standard deviation s1 of the original values, `after` holds m2 and s2 of the
// quantized ones. Does nothing if after.sigma is 0.
struct MeanAndSigma {
  double mean = 0, sigma = 0;
};
inline std::vector<float> QNormLevels(std::span<const float> levels, const MeanAndSigma& before,
                                      const MeanAndSigma& after) {
  std::vector<float> moved(levels.begin(), levels.end());
  if (!(after.sigma > 0)) return moved;
  const double scale = before.sigma / after.sigma, offset = before.mean - after.mean * scale;
  for (float& level : moved) level = static_cast<float>(level * scale + offset);
  return moved;
}

}  // namespace oscar
