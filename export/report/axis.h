// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Maps values to places in a chart, and chooses the values of ticks. Chart units are those of the
// SVG's viewBox.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oscar {

enum class Scale { kLinear, kLog };

struct Axis {
  Scale scale = Scale::kLinear;
  double lo = 0, hi = 1;      // in values; for a log scale both > 0
  double start = 0, end = 1;  // in chart units

  double operator()(double value) const;  // values outside are put at the ends
  // Returns values for ticks, at most about `count` of them, ascending.
  std::vector<double> Ticks(int count) const;
};

// The smallest and largest value for an axis: `Add` the values, then make an axis.
class Range {
 public:
  void Add(double value);
  bool empty() const { return lo_ > hi_; }
  double lo() const { return lo_; }
  double hi() const { return hi_; }
  // A log scale ignores zero and negative values. Its ends lie slightly outside the values and are
  // at least a factor of 2 apart. A linear scale starts at zero, or at a round negative number if
  // there are negative values, and ends at a round number.
  explicit Range(Scale scale) : scale_(scale) {}
  Axis MakeAxis(double start, double end) const;

 private:
  static constexpr double kLargest = 1e300;  // keeps differences between ends finite
  Scale scale_;
  double lo_ = kLargest, hi_ = -kLargest;
};

// Formats a tick: 0.001, 250, 4K (1024 is 1K only if `binary`).
std::string TickText(double value, bool binary = false);

// Formats a coordinate with one decimal, because screens do not show less than a tenth of a unit.
std::string Coordinate(double value);

// Moves places (in any order) apart until neighbours differ by `gap`, within [lo, hi]. Keeps their
// order and moves them as little as possible. If there is not enough room, the gap is smaller.
std::vector<double> SpreadOut(std::vector<double> places, double gap, double lo, double hi);

}  // namespace oscar
