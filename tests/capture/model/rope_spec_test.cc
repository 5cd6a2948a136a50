// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/rope_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace oscar {
namespace {

TEST(RopeSpec, FrequenciesAreAGeometricSeries) {
  RopeSpec rope;
  rope.theta = 10000;
  rope.rotary_dim = 8;
  const std::vector<double> frequencies = InverseFrequencies(rope);
  ASSERT_EQ(frequencies.size(), 4u);
  const double expected[] = {1, 0.1, 0.01, 0.001};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(frequencies[i], expected[i], 1e-15);
}

TEST(RopeSpec, LinearScalingSlowsEveryFrequency) {
  RopeSpec rope;
  rope.rotary_dim = 32;
  const std::vector<double> plain = InverseFrequencies(rope);
  rope.kind = RopeKind::kLinear;
  rope.factor = 4;
  const std::vector<double> scaled = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i] * 4, plain[i]);
}

// Llama 3.1: short wavelengths stay, long ones are slowed by the factor, and between them the
// change is continuous.
TEST(RopeSpec, Llama3KeepsHighAndSlowsLowFrequencies) {
  RopeSpec rope;
  rope.theta = 500000;
  rope.rotary_dim = 128;
  const std::vector<double> plain = InverseFrequencies(rope);
  rope.kind = RopeKind::kLlama3;
  rope.factor = 8;
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_max_positions = 8192;
  const std::vector<double> scaled = InverseFrequencies(rope);
  int kept = 0, slowed = 0, blended = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi / plain[i];
    if (wavelength < 8192.0 / 4) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i]);
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 8);
      ++slowed;
    } else {
      EXPECT_GT(scaled[i], plain[i] / 8);
      EXPECT_LT(scaled[i], plain[i]);
      ++blended;
    }
    if (i > 0) {
      EXPECT_LT(scaled[i], scaled[i - 1]);
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(slowed, 0);
  EXPECT_GT(blended, 0);
}

// arXiv 2309.00071: pairs that turn often within the original context keep their frequency, those
// that turn less than once are slowed by the whole factor.
TEST(RopeSpec, YarnKeepsHighAndSlowsLowFrequencies) {
  RopeSpec rope;
  rope.rotary_dim = 128;
  const std::vector<double> plain = InverseFrequencies(rope);
  rope.kind = RopeKind::kYarn;
  rope.factor = 16;
  rope.original_max_positions = 4096;
  const std::vector<double> scaled = InverseFrequencies(rope);
  EXPECT_EQ(scaled.front(), plain.front());
  EXPECT_DOUBLE_EQ(scaled.back() * 16, plain.back());
  for (size_t i = 1; i < scaled.size(); ++i) {
    const double rotations = 4096 * plain[i] / (2 * std::numbers::pi);
    if (rotations > 40) {
      EXPECT_EQ(scaled[i], plain[i]);
    }
    if (rotations < 0.8) {
      EXPECT_DOUBLE_EQ(scaled[i] * 16, plain[i]);
    }
    EXPECT_LT(scaled[i], scaled[i - 1]);
  }
}

TEST(RopeSpec, DynamicGrowsItsBaseWithLongSequencesAlone) {
  RopeSpec rope;
  rope.rotary_dim = 32;
  const std::vector<double> plain = InverseFrequencies(rope);
  rope.kind = RopeKind::kDynamic;
  rope.factor = 2;
  rope.original_max_positions = 100;
  EXPECT_EQ(InverseFrequencies(rope, 100), plain);
  EXPECT_EQ(LengthClass(rope, 100), 0);
  EXPECT_EQ(LengthClass(rope, 300), 300);
  // theta (2 * 3 - 1)^(32/30)
  rope.kind = RopeKind::kDefault;
  rope.theta = 10000 * std::pow(5.0, 32.0 / 30.0);
  const std::vector<double> expected = InverseFrequencies(rope);
  rope.kind = RopeKind::kDynamic;
  rope.theta = 10000;
  const std::vector<double> grown = InverseFrequencies(rope, 300);
  for (size_t i = 0; i < grown.size(); ++i) EXPECT_NEAR(grown[i] / expected[i], 1, 1e-12);
}

TEST(RopeSpec, LongRopeHasAListForShortAndOneForLongSequences) {
  RopeSpec rope;
  rope.rotary_dim = 4;
  const std::vector<double> plain = InverseFrequencies(rope);
  rope.kind = RopeKind::kLongRope;
  rope.original_max_positions = 100;
  rope.short_factor = {1, 2};
  rope.long_factor = {4, 8};
  EXPECT_EQ(InverseFrequencies(rope, 100)[1], plain[1] / 2);
  EXPECT_EQ(InverseFrequencies(rope, 101)[1], plain[1] / 8);
  EXPECT_EQ(LengthClass(rope, 101), LengthClass(rope, 5000));
}

TEST(RopeSpec, ProportionalLeavesTheOtherPairsStanding) {
  RopeSpec rope;
  rope.rotary_dim = 8;
  const std::vector<double> plain = InverseFrequencies(rope);
  rope.kind = RopeKind::kProportional;
  rope.turning_pairs = 1;
  EXPECT_EQ(InverseFrequencies(rope), (std::vector<double>{plain[0], 0, 0, 0}));
  rope.kind = RopeKind::kNone;
  EXPECT_TRUE(InverseFrequencies(rope).empty());
}

TEST(RopeSpec, DescriptionsNameEverySetting) {
  RopeSpec rope{RopeKind::kLlama3, 500000, 8, 1, 4, 8192, 128};
  EXPECT_EQ(DescribeRope(rope), "llama3 theta=500000 factor=8 low=1 high=4 original=8192");
  rope.kind = RopeKind::kLinear;
  EXPECT_EQ(DescribeRope(rope), "linear theta=500000 factor=8");
  rope.layout = RopeLayout::kInterleaved;
  rope.attention_factor = 1.25;
  EXPECT_EQ(DescribeRope(rope), "linear theta=500000 factor=8 attention=1.25 interleaved");
}

}  // namespace
}  // namespace oscar
