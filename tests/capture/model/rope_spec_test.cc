// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/rope_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace oscar {
namespace {

// Returns the frequencies of the same rope without scaling.
std::vector<double> PlainFrequencies(RopeSpec rope) {
  rope.kind = RopeKind::kDefault;
  return InverseFrequencies(rope);
}

TEST(RopeSpec, FrequenciesAreAGeometricSeries) {
  const std::vector<double> frequencies = InverseFrequencies({.theta = 10000, .rotary_dim = 8});
  ASSERT_EQ(frequencies.size(), 4u);
  const double expected[] = {1, 0.1, 0.01, 0.001};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(frequencies[i] / expected[i], 1, 1e-7);
}

// The reference rounds both the power and its inverse to float32; a single rounding gives
// 0.237137377.
TEST(RopeSpec, FrequenciesAreTheReferencesFloat32) {
  const std::vector<double> frequencies = InverseFrequencies({.theta = 100000, .rotary_dim = 64});
  EXPECT_EQ(frequencies[4], 0x1.e5a846p-3);
  EXPECT_EQ(frequencies[5], 0x1.52e812p-3);
  EXPECT_EQ(frequencies[8], 0x1.ccab84p-5);
}

TEST(RopeSpec, LinearScalingSlowsEveryFrequency) {
  const RopeSpec rope{.kind = RopeKind::kLinear, .factor = 4, .rotary_dim = 32};
  const std::vector<double> plain = PlainFrequencies(rope), scaled = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i] * 4, plain[i]);
}

// Llama 3.1 keeps frequencies of short wavelengths, divides those of long ones by the factor, and
// changes continuously between them.
TEST(RopeSpec, Llama3KeepsHighAndSlowsLowFrequencies) {
  const RopeSpec rope{RopeKind::kLlama3, 500000, 8, 1, 4, 8192, 128};
  const std::vector<double> plain = PlainFrequencies(rope), scaled = InverseFrequencies(rope);
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

// arXiv 2309.00071: pairs that rotate often within the original context keep their frequency. The
// frequencies of pairs that rotate less than once are divided by the factor.
TEST(RopeSpec, YarnKeepsHighAndSlowsLowFrequencies) {
  const RopeSpec rope{
      .kind = RopeKind::kYarn, .factor = 16, .original_max_positions = 4096, .rotary_dim = 128};
  const std::vector<double> plain = PlainFrequencies(rope), scaled = InverseFrequencies(rope);
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
  const RopeSpec rope{
      .kind = RopeKind::kDynamic, .factor = 2, .original_max_positions = 100, .rotary_dim = 32};
  EXPECT_EQ(InverseFrequencies(rope, 100), PlainFrequencies(rope));
  EXPECT_EQ(LengthClass(rope, 100), 0);
  EXPECT_EQ(LengthClass(rope, 300), 300);
  // The base grows to theta (2 * 3 - 1)^(32/30).
  const std::vector<double> expected =
      InverseFrequencies({.theta = 10000 * std::pow(5.0, 32.0 / 30.0), .rotary_dim = 32});
  const std::vector<double> grown = InverseFrequencies(rope, 300);
  for (size_t i = 0; i < grown.size(); ++i) EXPECT_NEAR(grown[i] / expected[i], 1, 2e-7);
}

TEST(RopeSpec, LongRopeHasAListForShortAndOneForLongSequences) {
  const RopeSpec rope{.kind = RopeKind::kLongRope,
                      .original_max_positions = 100,
                      .rotary_dim = 4,
                      .short_factor = {1, 2},
                      .long_factor = {4, 8}};
  const std::vector<double> plain = PlainFrequencies(rope);
  EXPECT_EQ(InverseFrequencies(rope, 100)[1], plain[1] / 2);
  EXPECT_EQ(InverseFrequencies(rope, 101)[1], plain[1] / 8);
  EXPECT_EQ(LengthClass(rope, 101), LengthClass(rope, 5000));
}

TEST(RopeSpec, ProportionalLeavesTheOtherPairsStanding) {
  RopeSpec rope{.kind = RopeKind::kProportional, .rotary_dim = 8, .turning_pairs = 1};
  const std::vector<double> plain = PlainFrequencies(rope);
  EXPECT_EQ(InverseFrequencies(rope), (std::vector<double>{plain[0], 0, 0, 0}));
  rope.kind = RopeKind::kNone;
  EXPECT_TRUE(InverseFrequencies(rope).empty());
}

}  // namespace
}  // namespace oscar
