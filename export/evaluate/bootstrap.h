// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The uncertainty of a mean: percentile bootstrap over units (Efron 1979), and quantiles. Trap:
// units must be independent of each other: a sequence or a piece of one, never a (row, head) pair.
// Pairs of a row share their tokens, which makes the interval far too narrow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "export/measures/fields.h"

namespace oscar {

// One unit of a ratio sum(sum) / sum(weight). For a mean KL these are the sum of KL and the number
// of rows. For perplexity they are the sum of -log p and the number of tokens, and exp() is applied
// to both ends of the interval (percentiles commute with exp). For a perplexity ratio, `sum` is the
// difference of the two sums.
struct RatioUnit {
  double sum = 0, weight = 0;  // both finite, weight >= 0
};

using measures::Interval;

struct BootstrapOptions {
  int64_t resamples = 1000;
  double confidence = 0.95;
  uint64_t seed = 0;
};

// Returns the quantiles (1 - confidence) / 2 and (1 + confidence) / 2 of the ratio over resamples
// of the units. Equal input gives equal results on every machine. Empty if fewer than 2 units have
// weight.
std::optional<Interval> BootstrapRatio(std::span<const RatioUnit> units,
                                       const BootstrapOptions& options = {});

// Does the same for units in groups, such as pieces in sequences. Draws as many groups as there
// are, and in each as many units as it has (two stages; Davison and Hinkley 1997, section 3.8). So
// the result includes the variation between and within sequences.
std::optional<Interval> BootstrapGroups(std::span<const std::vector<RatioUnit>> groups,
                                        const BootstrapOptions& options = {});

// Returns quantile p of n sorted values: linear interpolation at index p (n - 1) (Hyndman and Fan
// 1996, type 7; NumPy's default), in float64. `values` must not be empty; p is in [0, 1]. Throws
// NumericalError for NaN.
std::vector<double> Quantiles(std::vector<float> values, std::span<const double> probabilities);

}  // namespace oscar
