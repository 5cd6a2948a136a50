// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

// Returns a quantile of type 7 in Hyndman and Fan. Reorders `values`.
template <class Value>
double Quantile(std::vector<Value>& values, double p) {
  OSCAR_CHECK(!values.empty() && p >= 0 && p <= 1);
  const double index = p * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<ptrdiff_t>(std::floor(index));
  std::nth_element(values.begin(), below, values.end());
  const double low = static_cast<double>(*below);
  const double share = index - std::floor(index);
  if (share == 0) return low;
  return low + share * (static_cast<double>(*std::min_element(below + 1, values.end())) - low);
}

}  // namespace

std::optional<Interval> BootstrapRatio(std::span<const RatioUnit> units,
                                       const BootstrapOptions& options) {
  const std::vector<RatioUnit> one_group(units.begin(), units.end());
  return BootstrapGroups({&one_group, 1}, options);
}

std::optional<Interval> BootstrapGroups(std::span<const std::vector<RatioUnit>> groups,
                                        const BootstrapOptions& options) {
  OSCAR_CHECK(options.resamples >= 1 && options.confidence > 0 && options.confidence < 1);
  std::vector<std::vector<RatioUnit>> weighted;
  size_t units = 0;
  for (const std::vector<RatioUnit>& group : groups) {
    std::vector<RatioUnit> kept;
    for (const RatioUnit& unit : group) {
      OSCAR_CHECK(std::isfinite(unit.sum) && std::isfinite(unit.weight) && unit.weight >= 0);
      if (unit.weight > 0) kept.push_back(unit);
    }
    units += kept.size();
    if (!kept.empty()) weighted.push_back(std::move(kept));
  }
  if (units < 2) return {};
  SplitMix64 random(options.seed);
  std::vector<double> ratios(static_cast<size_t>(options.resamples));
  for (double& ratio : ratios) {
    RatioUnit total;
    for (size_t i = 0; i < weighted.size(); ++i) {
      const std::vector<RatioUnit>& group =
          weighted.size() == 1 ? weighted[0] : random.Pick(weighted);
      for (size_t j = 0; j < group.size(); ++j) {
        const RatioUnit& unit = random.Pick(group);
        total.sum += unit.sum;
        total.weight += unit.weight;
      }
    }
    ratio = total.sum / total.weight;
  }
  return Interval{Quantile(ratios, (1 - options.confidence) / 2),
                  Quantile(ratios, (1 + options.confidence) / 2)};
}

std::vector<double> Quantiles(std::vector<float> values, std::span<const double> probabilities) {
  if (std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); })) {
    throw NumericalError("quantiles: one of the values is NaN");
  }
  std::vector<double> quantiles;
  for (const double p : probabilities) quantiles.push_back(Quantile(values, p));
  return quantiles;
}

}  // namespace oscar
