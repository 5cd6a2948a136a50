// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The uncertainty of a mean by percentile bootstrap over units (Efron 1979), and quantiles. Trap:
// units must be independent of each other. A sequence or a piece of one is a unit, a (row, head)
// pair is not. All heads of a row share its tokens, so such pairs would make the interval far too
// narrow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "export/measures/fields.h"

namespace oscar {

// One unit of a ratio sum(sum) / sum(weight).
// - For a mean KL, `sum` is the sum of KL and `weight` the number of rows.
// - For a perplexity, `sum` is the sum of -log p and `weight` the number of tokens. exp() is
//   applied to both ends of the interval, because percentiles commute with it.
// - For a ratio of two perplexities, `sum` is the difference of their sums of -log p.
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
// of the units; nullopt if fewer than 2 units have weight. Equal input gives equal results on every
// machine.
std::optional<Interval> BootstrapRatio(std::span<const RatioUnit> units,
                                       const BootstrapOptions& options = {});

// Does the same for units in groups, such as pieces of sequences. A resample draws as many groups
// as there are, and then from each drawn group as many units as it has (two stages; Davison and
// Hinkley 1997, section 3.8). So the result includes the variation between and within groups.
std::optional<Interval> BootstrapGroups(std::span<const std::vector<RatioUnit>> groups,
                                        const BootstrapOptions& options = {});

// Returns the quantile for each probability p in [0, 1]: the value at index p (n - 1) of the n
// sorted values, by linear interpolation in float64 (Hyndman and Fan 1996, type 7; NumPy's
// default). `values` must not be empty. Throws NumericalError for NaN.
std::vector<double> Quantiles(std::vector<float> values, std::span<const double> probabilities);

}  // namespace oscar
