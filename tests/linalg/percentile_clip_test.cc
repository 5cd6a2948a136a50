// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/percentile_clip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/error.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

std::vector<float> SortedMagnitudes(std::vector<float> row) {
  for (float& y : row) y = std::abs(y);
  std::sort(row.begin(), row.end());
  return row;
}

TEST(PercentileClip, IndicesAsListed) {
  EXPECT_EQ(ClipIndex(0.96, 64), 61);
  EXPECT_EQ(ClipIndex(0.96, 128), 122);
  EXPECT_EQ(ClipIndex(0.96, 256), 245);
  EXPECT_EQ(ClipIndex(0.92, 64), 58);
  EXPECT_EQ(ClipIndex(0.92, 128), 117);
  EXPECT_EQ(ClipIndex(0.92, 256), 235);
  EXPECT_EQ(ClipIndex(0.75, 8), 6);
}

TEST(PercentileClip, IndexAtTheEnds) {
  EXPECT_EQ(ClipIndex(0, 128), std::nullopt);
  EXPECT_EQ(ClipIndex(-1, 128), std::nullopt);
  EXPECT_EQ(ClipIndex(1e-9, 128), 0);
  EXPECT_EQ(ClipIndex(1, 128), 127);
  EXPECT_EQ(ClipIndex(1e300, 128), 127);
  for (int64_t dim = 1; dim < 300; ++dim)
    EXPECT_EQ(ClipIndex(std::nextafter(1.0, 0.0), dim), dim - 1);
  EXPECT_THROW(ClipIndex(NAN, 128), UsageError);
}

TEST(PercentileClip, SortTakesTheOrderStatistic) {
  const std::vector<float> row = {-4, -1, -0.5F, 0, 0.5F, 1, 1.5F, 3};
  EXPECT_EQ(ClipThresholdSort<float>(row, 0.75), 3);
  EXPECT_EQ(ClipThresholdSort<float>(row, 1), 4);
  EXPECT_EQ(ClipThresholdSort<float>(row, 0), std::numeric_limits<float>::infinity());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> random = RandomRow(128, seed);
    EXPECT_EQ(ClipThresholdSort<float>(random, 0.96), SortedMagnitudes(random)[122]);
  }
}

// The bisection converges from above to the order statistic just below that of ClipMethod::kSort.
TEST(PercentileClip, BisectApproachesOneOrderStatisticLower) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const int64_t dim : {64, 128, 256}) {
      const std::vector<float> row = RandomRow(dim, seed);
      const std::vector<float> sorted = SortedMagnitudes(row);
      for (const double ratio : {0.96, 0.92}) {
        const float limit = sorted[static_cast<size_t>(*ClipIndex(ratio, dim) - 1)];
        const float resolution = sorted.back() / static_cast<float>(dim);
        const float threshold = ClipThresholdBisect<float>(row, ratio);
        EXPECT_GE(threshold, limit);
        EXPECT_LE(threshold, limit + 1.0001F * resolution);
      }
    }
  }
}

TEST(PercentileClip, BisectTakesLog2Steps) {
  // The row is 0..127, and 5 of its 128 values exceed the sort threshold. After 7 halvings the
  // threshold is a multiple of 127 / 2^7.
  std::vector<float> ramp(128);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  const float threshold = ClipThresholdBisect<float>(ramp, 0.96);
  EXPECT_EQ(std::fmod(threshold, 127.0F / 128), 0);
  EXPECT_EQ(threshold, 122 * (127.0F / 128));  // 121.05: the smallest multiple that is >= 121
  std::vector<float> one(64, 0);
  one[9] = 1;  // the only value above every midpoint
  EXPECT_EQ(ClipThresholdBisect<float>(one, 0.9), 0x1p-6F);
}

TEST(PercentileClip, ShortRowsAreSortedByBothMethods) {
  const std::vector<float> row = RandomRow(32, 1);
  EXPECT_EQ(ClipThreshold<float>(row, 0.92, ClipMethod::kBisect),
            ClipThresholdSort<float>(row, 0.92));
  const std::vector<float> longer = RandomRow(64, 1);
  EXPECT_EQ(ClipThreshold<float>(longer, 0.92, ClipMethod::kBisect),
            ClipThresholdBisect<float>(longer, 0.92));
  EXPECT_EQ(ClipThreshold<float>(longer, 0.92, ClipMethod::kSort),
            ClipThresholdSort<float>(longer, 0.92));
}

TEST(PercentileClip, ClampIsSymmetricAndInfinityLeavesTheRow) {
  std::vector<float> row = {-4, -1, 0, 2, 3.5F};
  ClampRow<float>(row, std::numeric_limits<float>::infinity());
  EXPECT_EQ(row, (std::vector<float>{-4, -1, 0, 2, 3.5F}));
  ClampRow<float>(row, 2);
  EXPECT_EQ(row, (std::vector<float>{-2, -1, 0, 2, 2}));
}

TEST(PercentileClip, NonFiniteRowsAreErrors) {
  std::vector<float> row = RandomRow(64, 3);
  row[10] = NAN;
  EXPECT_THROW(ClipThresholdSort<float>(row, 0.96), NumericalError);
  row[10] = INFINITY;
  EXPECT_THROW(ClipThresholdBisect<float>(row, 0.96), NumericalError);
}

}  // namespace
}  // namespace oscar
