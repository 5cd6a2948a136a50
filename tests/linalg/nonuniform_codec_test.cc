// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests worked examples, and each of KVQuant's rules for outliers.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/reference/sample_levels.h"
#include "tests/reference/scalar_nonuniform.h"

namespace oscar {
namespace {

using Floats = std::vector<float>;

NonuniformFormat Levels(const Floats& levels) {
  return {.bits = 2, .levels = levels, .values = levels};
}

TEST(Quantile, InterpolatesBetweenNeighbours) {
  const std::vector<double> x = {1, 2, 4, 8, 16};
  EXPECT_EQ(QuantileOfSorted<double>(x, 0), 1);
  EXPECT_EQ(QuantileOfSorted<double>(x, 0.5), 4);
  EXPECT_EQ(QuantileOfSorted<double>(x, 1), 16);
  EXPECT_EQ(QuantileOfSorted<double>(x, 0.125), 1.5);
  EXPECT_EQ(QuantileOfSorted<double>(x, 0.9375), 14);
  EXPECT_EQ(QuantileOfSorted<double>(std::vector<double>{3}, 0.3), 3);
}

TEST(Quantile, TheLowerOfTwoMedians) {
  EXPECT_EQ(LowerMedianOfSorted<float>(Floats{1, 2, 3, 4}), 2);
  EXPECT_EQ(LowerMedianOfSorted<float>(Floats{1, 2, 3}), 2);
  EXPECT_EQ(LowerMedianOfSorted<float>(Floats{1}), 1);
}

TEST(Quantile, HalfOfWhatIsNotKeptOnEitherSide) {
  EXPECT_NEAR(QuantilesKeeping(0.99).low, 0.005, 1e-15);
  EXPECT_NEAR(QuantilesKeeping(0.99).high, 0.995, 1e-15);
  EXPECT_EQ(QuantilesKeeping(1).low, 0);
  EXPECT_EQ(QuantilesKeeping(1).high, 1);
}

TEST(NonuniformCodec, TheExampleOfTheReference) {
  const NonuniformFormat format = Levels({-1, -0.25F, 0.25F, 1});
  const Floats y = {3, 7, -2, 6, -2.5F}, low(5, -2), high(5, 6);
  Floats out(5);
  RoundTripChannels<float>(y, low, high, format, true, out);
  EXPECT_EQ(out, (Floats{3, 7, -2, 6, -2.5F}));
  RoundTripChannels<float>(y, low, high, format, false, out);
  EXPECT_EQ(out, (Floats{3, 6, -2, 6, -2}));
}

TEST(NonuniformCodec, TheFirstOfTwoNearestLevels) {
  const NonuniformFormat format = Levels({-1, 0, 0.5F, 1});
  EXPECT_EQ(NonuniformValue<float>(0.25F, {-1, 1}, format), 0);
  EXPECT_EQ(NonuniformValue<float>(-0.5F, {-1, 1}, format), -1);
  EXPECT_EQ(NonuniformValue<float>(0.75F, {-1, 1}, format), 0.5F);
}

TEST(NonuniformCodec, LevelsMayBeReadBackAsOthers) {  // Q-Norm
  NonuniformFormat format = Levels({-1, -0.25F, 0.25F, 1});
  format.values = QNormLevels(format.levels, {0.1, 0.5}, {-0.05, 0.25});
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(format.values[i], format.levels[i] * 2 + 0.2F);
  EXPECT_FLOAT_EQ(NonuniformValue<float>(3, {-2, 6}, format), 0.7F * 4 + 2);
  EXPECT_EQ(QNormLevels(format.levels, {0.1, 0.5}, {0.3, 0}), format.levels);
}

TEST(NonuniformCodec, ARangeOfNoWidthIsItsValue) {
  EXPECT_EQ(NonuniformValue<float>(3, {3, 3}, Levels(SampleLevels(2))), 3);
  EXPECT_EQ(NonuniformValue<float>(0, {0, 0}, Levels(SampleLevels(4))), 0);
  EXPECT_EQ(NonuniformValue<float>(3, {3, 3}, {.bits = 2, .levels = {}, .values = {}}),
            0);  // as published: NaN is read as 0
}

TEST(NonuniformCodec, WhatIsNotFiniteIsReadAsZero) {
  const float max = std::numeric_limits<float>::max();
  EXPECT_EQ(NonuniformValue<float>(max, {-max, max}, Levels({-1, 0, 0.5F, 1})), 0);
}

TEST(NonuniformCodec, UniformByHand) {
  // a = 3 / 4 and z = -0.75, so q = HE(0.75 y + 0.75), where HE rounds half to even.
  const NonuniformFormat format = {.bits = 2, .levels = {}, .values = {}};
  const Floats y = {-1, 0, 1, 2.9F, 3, 9, -9};
  const std::vector<double> expected = {-1, 1.0 / 3, 5.0 / 3, 3, 3, 3, -1};
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(NonuniformValue<float>(y[i], {-1, 3}, format), expected[i], 1e-6) << i;
  // With an integer offset z = -1, codes are HE(0.75 y + 1) and values (q - 1) / 0.75.
  const NonuniformFormat integer = {.bits = 2, .levels = {}, .values = {}, .integer_offset = true};
  EXPECT_NEAR(NonuniformValue<float>(-1, {-1, 3}, integer), -4.0 / 3, 1e-6);
  EXPECT_EQ(NonuniformValue<float>(0, {-1, 3}, integer), 0);
  // All values are positive, so z = 2.25 is clamped to 0. The value 5 gets code 3, the largest one,
  // because 0.75 * 5 > 3.
  EXPECT_NEAR(NonuniformValue<float>(5, {3, 7}, integer), 4, 1e-6);
}

TEST(NonuniformCodec, ATokensRangeIsWhatItsOutliersLeave) {
  // The quantiles 0.1 and 0.9 of 5 values lie between the extremes and their neighbours. The
  // extremes are therefore outliers, the median 2 takes their place, and the range is [1, 3].
  const Floats y = {-50, 3, 2, 1, 90};
  const NonuniformFormat format = Levels({-1, 1, 1, 1});
  Floats out(5);
  EXPECT_EQ(RoundTripToken<float>(y, 0.8, format, out), 2);
  EXPECT_EQ(out, (Floats{-50, 3, 1, 1, 90}));
  EXPECT_EQ(RoundTripToken<float>(y, 1, format, out), 0);
  EXPECT_EQ(out, (Floats{-50, -50, -50, -50, 90}));
}

TEST(NonuniformCodec, AtTheThresholdValuesAreOutliersAndKeysAreNot) {
  const Floats y(8, 5);
  Floats out(8);
  const NonuniformFormat zero = Levels({0, 0, 0, 0});
  EXPECT_EQ(RoundTripToken<float>(y, 0.99, zero, out), 8);
  EXPECT_EQ(out, y);
  const Floats low(8, 4), high(8, 5);
  RoundTripChannels<float>(y, low, high, zero, true, out);
  EXPECT_EQ(out, Floats(8, 4.5F));
}

}  // namespace
}  // namespace oscar
