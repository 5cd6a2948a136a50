// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks of linearly interpolated quantiles. Trap: the rank is computed in float64 and only its
// fraction is rounded to T. So if the rank is an integer, the quantile is exactly the value at that
// rank. Libraries that compute the rank in float32 miss this value for long rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "linalg/base/check.h"

namespace oscar {

// Position of the q-quantile in `count` sorted values: lower + fraction, 0 <= fraction < 1.
struct QuantileRank {
  int64_t lower = 0;
  double fraction = 0;
};

inline QuantileRank RankOfQuantile(double q, int64_t count) {
  OSCAR_CHECK_LT(0, count);
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count - 1);
  const auto lower = static_cast<int64_t>(rank);
  return {lower, rank - static_cast<double>(lower)};
}

// The two quantiles beyond which values are outliers, if a share `kept` of all values are not
// outliers. Half of the outliers are on each side (KVQuant): the quantiles are 1 - t and t, with t
// = 1 - (1 - kept) / 2.
struct KeptQuantiles {
  double low = 0, high = 1;
};

inline KeptQuantiles QuantilesKeeping(double kept) {
  const double high = 1 - (1 - kept) / 2;
  return {1 - high, high};
}

}  // namespace oscar
