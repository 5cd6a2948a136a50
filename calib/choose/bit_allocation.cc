// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/bit_allocation.h"

#include <cstddef>

#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr double kBudgetRounding = 1e-9;  // bits per token; absorbs rounding in sums of fractions

struct Step {
  double slope = 0;  // damage saved per bit
  size_t part = 0, to = 0;
  double price = 0;
};

}  // namespace

double ValueDamage(double value_error, double key_kl, double key_error) {
  if (!(key_error > 0)) return 0;
  const double ratio = value_error / key_error;
  return kValueShare * key_kl * ratio * ratio;
}

std::vector<double> AllocateBits(std::span<const BitPart> parts, double budget) {
  std::vector<size_t> at(parts.size(), 0);
  double left = budget + kBudgetRounding;
  for (const BitPart& part : parts) {
    OSCAR_CHECK(!part.points.empty());
    left -= part.elements * part.points[0].bits;
  }
  while (true) {
    Step best;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<BitPoint>& points = parts[i].points;
      const BitPoint& from = points[at[i]];
      for (size_t to = at[i] + 1; to < points.size(); ++to) {
        const double price = parts[i].elements * (points[to].bits - from.bits);
        const double slope = (from.damage - points[to].damage) / price;
        if (price <= left && slope > best.slope) best = {slope, i, to, price};
      }
    }
    if (best.slope <= 0) break;
    at[best.part] = best.to;
    left -= best.price;
  }
  std::vector<double> bits;
  for (size_t i = 0; i < parts.size(); ++i) bits.push_back(parts[i].points[at[i]].bits);
  return bits;
}

}  // namespace oscar
