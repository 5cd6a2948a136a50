// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From values to places in a chart, and the values worth a tick. Units of a chart are those of its
// viewBox.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oscar {

enum class Scale { kLinear, kLog };

struct Axis {
  Scale scale = Scale::kLinear;
  double lo = 0, hi = 1;      // values; log: both > 0
  double start = 0, end = 1;  // chart units

  double operator()(double value) const;  // values outside are put on the edge
  // Values for ticks, at most about `count` of them, ascending.
  std::vector<double> Ticks(int count) const;
};

// The smallest and largest of the values an axis must hold: `Add` them, then take an axis.
class Range {
 public:
  void Add(double value);
  bool empty() const { return lo_ > hi_; }
  double lo() const { return lo_; }
  double hi() const { return hi_; }
  // Log: zero and negative values were not counted; the ends lie a little outside and at least a
  // factor 2 apart. Linear: from zero to a round number.
  explicit Range(Scale scale) : scale_(scale) {}
  Axis MakeAxis(double start, double end) const;

 private:
  static constexpr double kLargest = 1e300;  // so that differences of ends are finite
  Scale scale_;
  double lo_ = kLargest, hi_ = -kLargest;
};

// A tick's text: 0.001, 250, 4K (1024 is 1K only where `binary`).
std::string TickText(double value, bool binary = false);

// Coordinates are printed with one decimal: a tenth of a unit is below what a screen shows.
std::string Coordinate(double value);

// Moves places (ascending or not) apart until neighbours differ by `gap`, within [lo, hi], keeping
// their order and moving as little as possible. If there is not room for all, the gap is smaller.
std::vector<double> SpreadOut(std::vector<double> places, double gap, double lo, double hi);

}  // namespace oscar
