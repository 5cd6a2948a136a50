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

TEST(RopeSpec, DescriptionsNameEverySetting) {
  RopeSpec rope{RopeKind::kLlama3, 500000, 8, 1, 4, 8192, 128};
  EXPECT_EQ(DescribeRope(rope), "llama3 theta=500000 factor=8 low=1 high=4 original=8192");
  rope.kind = RopeKind::kLinear;
  EXPECT_EQ(DescribeRope(rope), "linear theta=500000 factor=8");
}

}  // namespace
}  // namespace oscar
