// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What two halves of the tokens have in common; what their fits cost: auto_search_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "calib/choose/recipe_fit.h"
#include "tests/calib/moments/sample_moments.h"

namespace oscar {
namespace {

// Two halves that agree, and two that have nothing in common.
TEST(Stability, AnglesAndSharesSeeWhatHalvesHaveInCommon) {
  const LayerMoments first = SampleMoments(0, 400, 1);
  const Stability same = CompareHalves(first, SampleMoments(0, 400, 2));
  EXPECT_TRUE(same.measured);
  EXPECT_EQ(same.tokens, 400);
  EXPECT_GT(same.k_kept, 0.9);
  EXPECT_FALSE(same.few_tokens);

  LayerMoments mirrored = SampleMoments(0, 400, 2);  // its last channels lead; the mirror's first
  const std::vector<double> query = mirrored.query;
  for (size_t head = 0; head < 2; ++head) {
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < 8; ++j)
        mirrored.query[head * 64 + i * 8 + j] = query[head * 64 + (7 - i) * 8 + (7 - j)];
    }
  }
  const Stability other = CompareHalves(first, mirrored);
  EXPECT_LT(other.k_kept, 0.5);
  EXPECT_GT(other.k_angle, 60);
  EXPECT_EQ(other.v_kept, same.v_kept);
  const std::vector<double> output = mirrored.attention_output;
  for (size_t i = 0; i < 16; ++i) mirrored.attention_output[i] = output[15 - i];  // of head 0
  EXPECT_LT(CompareHalves(first, mirrored).v_kept, 0.8);

  const Stability few = CompareHalves(SampleMoments(0, 60, 1), SampleMoments(0, 400, 2));
  EXPECT_TRUE(few.few_tokens);  // 60 < 20 * 8
  EXPECT_TRUE(few.unstable);
}

// Leading planes (e8, e7) and (e8, cos 30 e7 + sin 30 e6): the largest angle is 30 degrees, and the
// first keeps 1 + cos^2 30 of the second's 2. The other head is the same in both halves.
TEST(Stability, TellsTheLargestAngleOfTheWorstHead) {
  for (const size_t head : {0, 1}) {
    LayerMoments first = SampleMoments(0, 400, 1), second = first;
    const auto set = [&](LayerMoments& moments, double degrees) {
      const double c = std::cos(degrees * M_PI / 180), s = std::sin(degrees * M_PI / 180);
      Matrix m = 1e-6 * Matrix::Identity(8, 8);
      m(7, 7) = 1.1;
      m(0, 0) = m(1, 1) = 0.2;
      Vector u = Vector::Zero(8);
      u[6] = c;
      u[5] = s;
      m += u * u.transpose();
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j)
          moments.query[head * 64 + static_cast<size_t>(i * 8 + j)] = m(i, j);
      }
    };
    set(first, 0);
    set(second, 30);
    const Stability stability = CompareHalves(first, second);
    EXPECT_NEAR(stability.k_angle, 30, 0.1);
    EXPECT_NEAR(stability.k_kept, 1.85 / 2.1, 1e-3);
    EXPECT_NEAR(stability.v_angle, 0, 1e-3);
    EXPECT_NEAR(stability.v_kept, 1, 1e-9);
  }
}

TEST(Stability, TheOtherHalfIsWhatIsLeft) {
  const LayerMoments second = SampleMoments(0, 30, 2);
  LayerMoments first = SampleMoments(0, 50, 1), all = first;
  all.Merge(second);
  first.value.clear();
  const LayerMoments other = OtherHalf(all, first);
  EXPECT_EQ(other.tokens, 30);
  EXPECT_TRUE(other.value.empty());
  for (size_t i = 0; i < second.key.size(); ++i) {
    EXPECT_NEAR(other.query[i], second.query[i], 1e-9 * std::abs(all.query[i]));
    EXPECT_NEAR(other.key[i], second.key[i], 1e-9 * std::abs(all.key[i]));
  }
  EXPECT_NEAR(other.key_sum[3], second.key_sum[3], 1e-9 * std::abs(all.key_sum[3]));
  EXPECT_NEAR(other.attention_output[5], second.attention_output[5],
              1e-9 * std::abs(all.attention_output[5]));
  EXPECT_TRUE(CompareHalves(first, OtherHalf(first, first)).few_tokens);  // nothing is left
}

}  // namespace
}  // namespace oscar
