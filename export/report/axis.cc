// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace oscar {
namespace {

// Return a number of the form 1, 2 or 5 times a power of ten: the largest that is not above
// `value`, or the smallest that is not below it.
double RoundDown125(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (double digit : {5.0, 2.0}) {
    if (digit * power <= value * (1 + 1e-9)) return digit * power;
  }
  return power;
}
double RoundUp125(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= value * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

}  // namespace

double Axis::operator()(double value) const {
  double share = 0;
  if (scale == Scale::kLog) {
    // Uses logarithms, because quotients of values may be infinite.
    share = value > 0 ? (std::log(value) - std::log(lo)) / (std::log(hi) - std::log(lo)) : 0;
  } else {
    share = (value - lo) / (hi - lo);
  }
  return start + (end - start) * std::clamp(share, 0.0, 1.0);
}

std::vector<double> Axis::Ticks(int count) const {
  std::vector<double> ticks;
  if (scale == Scale::kLog) {
    const double decades = std::log10(hi) - std::log10(lo);
    const int first = static_cast<int>(std::floor(std::log10(lo)));
    const int last = static_cast<int>(std::ceil(std::log10(hi)));
    const int stride = std::max(1, static_cast<int>(std::ceil(decades / count)));
    std::vector<double> digits = {1};
    if (decades < 0.4) {
      digits = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    } else if (decades < 0.7) {
      digits = {1, 1.5, 2, 3, 5, 7};
    } else if (3 * decades <= count + 2) {
      digits = {1, 2, 5};
    }
    for (int decade = first; decade <= last; decade += stride) {
      for (double digit : digits) {
        const double value = digit * std::pow(10.0, decade);
        if (value >= lo * (1 - 1e-9) && value <= hi * (1 + 1e-9)) ticks.push_back(value);
      }
    }
    return ticks;
  }
  const double step = RoundUp125((hi - lo) / count);
  for (double i = std::ceil(lo / step - 1e-9); i * step <= hi * (1 + 1e-9); ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

void Range::Add(double value) {
  if (!std::isfinite(value) || (scale_ == Scale::kLog && value <= 0)) return;
  value = std::clamp(value, -kLargest, kLargest);
  lo_ = std::min(lo_, value);
  hi_ = std::max(hi_, value);
}

Axis Range::MakeAxis(double start, double end) const {
  Axis axis{scale_, 0, 1, start, end};
  if (scale_ == Scale::kLog) {
    axis.lo = empty() ? 0.1 : std::max(lo_, 1e-290) / 1.1;
    axis.hi = empty() ? 1 : hi_ * 1.1;
    if (axis.hi < axis.lo * 2) {  // too narrow for two ticks: widens it to round numbers
      axis.lo = RoundDown125(axis.lo);
      axis.hi = RoundUp125(std::max(axis.hi, axis.lo * 2));
    }
  } else {
    axis.lo = empty() || lo_ >= 0 ? 0 : -RoundUp125(-lo_);
    if (!empty() && hi_ > 0) {
      const double step = RoundUp125((hi_ - axis.lo) / 5);
      axis.hi = std::ceil(hi_ / step - 1e-9) * step;
    }
  }
  return axis;
}

std::string TickText(double value, bool binary) {
  if (binary && value >= 1024 && std::fmod(value, 1024) == 0)
    return fmt::format("{:.0f}K", value / 1024);
  if (value != 0 && (std::abs(value) < 1e-3 || std::abs(value) >= 1e6)) {
    const int decade = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
    return fmt::format("{:.0f}e{}", value / std::pow(10.0, decade), decade);
  }
  return fmt::format("{:.6g}", value);
}

std::string Coordinate(double value) {
  // A fast path for coordinates that clearly round to a tenth, because charts have many of them.
  const double tenths = std::abs(value) * 10, nearest = std::nearbyint(tenths);
  if (tenths < 1e6 && std::abs(tenths - nearest) < 0.499) {
    const auto whole = static_cast<int>(nearest);
    const fmt::format_int units(value < 0 ? -(whole / 10) : whole / 10);
    std::string text(value < 0 && whole != 0 && whole < 10 ? "-" : "");
    text.append(units.data(), units.size());
    if (whole % 10 != 0) {
      text += '.';
      text += static_cast<char>('0' + whole % 10);
    }
    return text;
  }
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::vector<double> SpreadOut(std::vector<double> places, double gap, double lo, double hi) {
  if (places.empty()) return places;
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return places[a] < places[b]; });
  const auto count = static_cast<double>(places.size());
  if (count > 1) gap = std::min(gap, (hi - lo) / (count - 1));
  // Minimizes the sum of squared moves. Places that would be too close to each other form a pile,
  // which keeps their mean.
  struct Pile {
    double sum;  // sum of wanted places, minus gaps before them
    double count;
    double mean() const { return sum / count; }
  };
  std::vector<Pile> piles;
  for (size_t i = 0; i < order.size(); ++i) {
    piles.push_back({places[order[i]] - static_cast<double>(i) * gap, 1});
    while (piles.size() > 1 && piles[piles.size() - 2].mean() > piles.back().mean()) {
      const Pile last = piles.back();
      piles.pop_back();
      piles.back().sum += last.sum;
      piles.back().count += last.count;
    }
  }
  size_t next = 0;
  for (const Pile& pile : piles) {
    for (double i = 0; i < pile.count; ++i, ++next)
      places[order[next]] = pile.mean() + static_cast<double>(next) * gap;
  }
  double floor = lo;  // moves places up that are below the range
  for (size_t i : order) {
    places[i] = std::max(places[i], floor);
    floor = places[i] + gap;
  }
  double ceiling = hi;  // moves places down that are above it
  for (size_t i = order.size(); i-- > 0;) {
    double& place = places[order[i]];
    place = std::min(place, ceiling);
    ceiling = place - gap;
  }
  return places;
}

}  // namespace oscar
