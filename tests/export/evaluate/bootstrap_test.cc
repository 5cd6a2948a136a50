// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/bootstrap.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

// Returns a sum of twelve uniform numbers, minus 6: mean 0, variance 1.
double Normal(SplitMix64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.Uniform();
  return sum;
}

TEST(Bootstrap, EqualUnitsHaveNoSpread) {
  const std::vector<RatioUnit> units(5, {.sum = 6, .weight = 3});
  const auto interval = BootstrapRatio(units);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->low, 2);
  EXPECT_DOUBLE_EQ(interval->high, 2);
}

// The standard error of a mean of 400 values of variance 1 is 1/20.
TEST(Bootstrap, WidthIsThatOfTheNormalApproximation) {
  SplitMix64 random(1);
  std::vector<RatioUnit> units;
  for (int i = 0; i < 400; ++i) units.push_back({Normal(random), 1});
  const auto interval = BootstrapRatio(units);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->high - interval->low, 2 * 1.96 / 20, 0.02);
}

// Expects a 95 % interval to cover the truth in about 285 of 300 trials (standard deviation 3.8).
// With small samples it covers the truth slightly less often.
TEST(Bootstrap, CoversTheTruthAsOftenAsItSays) {
  SplitMix64 random(2);
  int covered = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<RatioUnit> units;
    for (int i = 0; i < 40; ++i) {
      const double weight = 1 + static_cast<double>(random.Below(4));
      units.push_back({weight * (3 + Normal(random)), weight});
    }
    const auto interval = BootstrapRatio(units, {.seed = static_cast<uint64_t>(trial)});
    covered += interval->low <= 3 && 3 <= interval->high ? 1 : 0;
  }
  EXPECT_GE(covered, 268);
  EXPECT_LE(covered, 298);
}

TEST(Bootstrap, SameSeedSameInterval) {
  const std::vector<RatioUnit> units = {{1, 1}, {5, 2}, {2, 3}, {9, 4}, {0, 1}};
  const auto a = BootstrapRatio(units, {.seed = 7}), b = BootstrapRatio(units, {.seed = 7});
  EXPECT_EQ(a->low, b->low);
  EXPECT_EQ(a->high, b->high);
  EXPECT_NE(a->low, BootstrapRatio(units, {.resamples = 999, .seed = 8})->low);
  EXPECT_LE(a->low, 17.0 / 11);
  EXPECT_GE(a->high, 17.0 / 11);
}

TEST(Bootstrap, OneUnitSaysNothing) {
  EXPECT_FALSE(BootstrapRatio({}));
  EXPECT_FALSE(BootstrapRatio(std::array{RatioUnit{3, 1}}));
  EXPECT_FALSE(BootstrapRatio(std::array{RatioUnit{3, 1}, RatioUnit{0, 0}}));
}

// If values differ only between groups, the number of groups sets the width, not the number of
// units. If they differ only within groups, the number of units sets it.
TEST(Bootstrap, GroupsCountAsOne) {
  SplitMix64 random(3);
  std::vector<std::vector<RatioUnit>> between, within;
  for (int group = 0; group < 100; ++group) {
    const double common = Normal(random);
    between.emplace_back(16, RatioUnit{common, 1});
    std::vector<RatioUnit>& units = within.emplace_back();
    for (int i = 0; i < 4; ++i) units.push_back({Normal(random), 1});
  }
  const auto wide = BootstrapGroups(between), narrow = BootstrapGroups(within);
  EXPECT_NEAR(wide->high - wide->low, 2 * 1.96 / 10, 0.06);
  // Two stages of resampling add their variances.
  EXPECT_NEAR(narrow->high - narrow->low, 2 * 1.96 * std::sqrt(2) / 20, 0.06);
  const std::vector<RatioUnit> one = {{1, 1}, {5, 2}, {2, 3}};
  EXPECT_EQ(BootstrapGroups(std::array{one})->low, BootstrapRatio(one)->low);
  EXPECT_FALSE(BootstrapGroups(std::array{std::vector<RatioUnit>{{3, 1}}}));
}

// Expects the values of numpy.quantile([3, 1, 4, 1, 5], [0, .25, .5, .9, .99, 1]).
TEST(Quantiles, AreThoseOfNumPy) {
  const std::array p = {0.0, 0.25, 0.5, 0.9, 0.99, 1.0};
  const std::vector<double> q = Quantiles({3, 1, 4, 1, 5}, p);
  const std::array expected = {1.0, 1.0, 3.0, 4.6, 4.96, 5.0};
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(q[i], expected[i], 1e-12) << p[i];
  EXPECT_EQ(Quantiles({2}, p), std::vector<double>(6, 2));
  // Float32 values are interpolated in float64.
  EXPECT_DOUBLE_EQ(Quantiles({1, std::nextafterf(1, 2)}, std::array{0.5})[0], 1 + 0x1p-24);
}

TEST(Quantiles, NaNIsAnError) {
  EXPECT_THROW(Quantiles({1, std::numeric_limits<float>::quiet_NaN()}, std::array{0.5}),
               NumericalError);
}

}  // namespace
}  // namespace oscar
