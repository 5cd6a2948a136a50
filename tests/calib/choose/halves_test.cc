// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the comparison of two halves of the tokens. choice_search_test.cc tests what a fit to one
// half costs.
#include <gtest/gtest.h>

#include <cmath>

#include "calib/choose/recipe_fit.h"
#include "tests/calib/moments/sample_moments.h"

namespace oscar {
namespace {

TEST(Stability, FewTokensAreUnstable) {
  const Stability enough = CompareHalves(SampleMoments(0, 400, 1), SampleMoments(0, 400, 2));
  EXPECT_TRUE(enough.measured);
  EXPECT_EQ(enough.tokens, 400);
  EXPECT_FALSE(enough.few_tokens);
  const Stability few = CompareHalves(SampleMoments(0, 60, 1), SampleMoments(0, 400, 2));
  EXPECT_TRUE(few.few_tokens);  // 60 < 20 * 8
  EXPECT_TRUE(few.unstable);
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
  EXPECT_TRUE(CompareHalves(first, OtherHalf(first, first)).few_tokens);  // the other half is empty
}

}  // namespace
}  // namespace oscar
