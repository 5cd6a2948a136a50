// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/normal_float.h"

#include <cmath>
#include <numbers>

#include "linalg/check.h"

namespace oscar {

// Newton's iteration in the tail's logarithm, which is concave, so that it converges from anywhere.
double NormalQuantile(double p) {
  OSCAR_CHECK(p > 0 && p < 1);
  if (p > 0.5) return -NormalQuantile(1 - p);
  const double log_p = std::log(p);
  double x = p < 0.1 ? -std::sqrt(-2 * log_p) : 0;
  for (int step = 0; step < 60; ++step) {
    const double cdf = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    const double change = (std::log(cdf) - log_p) * cdf / density;
    x -= change;
    if (std::abs(change) <= 1e-15 * (1 + std::abs(x))) break;
  }
  return x;
}

std::vector<float> NormalFloatLevels(int bits) {
  OSCAR_CHECK(bits >= 2 && bits <= 8);
  const double edge = 0.5 * (1.0 / 32 + 1.0 / 30);  // probability beyond the outermost level
  const double outermost = -NormalQuantile(edge);
  const int half = 1 << (bits - 1);
  std::vector<float> levels;
  for (int i = 0; i < half - 1; ++i) {
    const double p = edge + (0.5 - edge) * i / (half - 1);
    levels.push_back(static_cast<float>(NormalQuantile(p) / outermost));
  }
  levels.push_back(0);
  for (int i = 1; i <= half; ++i) {
    const double p = 0.5 + (0.5 - edge) * i / half;
    levels.push_back(static_cast<float>(NormalQuantile(p) / outermost));
  }
  return levels;
}

}  // namespace oscar
