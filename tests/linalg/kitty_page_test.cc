// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "tests/reference/scalar_kitty.h"
#include "tests/reference/token_norm.h"

namespace oscar {
namespace {

// Bits per key value: 2.25 for codes (16 of 128 channels have 4 bits), 0.25 for scale and offset,
// and 8 / 128 for the slot index.
TEST(KittyPage, BitsOfAKey) {
  EXPECT_EQ(KittyBoostedChannels(0.125, 128), 16);
  EXPECT_EQ(KittyBoostedChannels(0.25, 128), 32);
  EXPECT_EQ(KittyBoostedChannels(0.2, 128), 25);
  EXPECT_EQ(8.0 * static_cast<double>(KittyPageBytes({128, 128}, 16)) / (128 * 128),
            2.25 + 0.25 + 0.0625);
}

TEST(KittyPage, BoostsTheLargestMeans) {
  const KittyShape shape = {4, 6};
  // The channels' means of |k| are 1, 3, 2, 3, 0, 1. Channel 2 has the largest value, not the
  // largest mean.
  const std::vector<float> page = {-1, 3, 8, -3, 0, 1, 1, -3, 0, 3, 0, 1,
                                   1,  3, 0, 3,  0, 1, 1, 3,  0, 3, 0, 1};
  EXPECT_EQ(BoostedChannels<float>(page, shape, 0.5),
            (std::vector<bool>{false, true, true, true, false, false}));
  EXPECT_EQ(BoostedChannels<float>(page, shape, 0.17),  // a tie: the lower channel
            (std::vector<bool>{false, true, false, false, false, false}));
  EXPECT_EQ(BoostedChannels<float>(page, shape, 0), std::vector<bool>(6, false));
}

TEST(TokenNorm, IsOverAllHeadsAndOneForZeros) {
  EXPECT_EQ(TokenNorm<float>(std::vector<float>{3, 0, 0, -4}), 5);
  EXPECT_EQ(TokenNorm<double>(std::vector<double>(6, 0.0)), 1);
}

}  // namespace
}  // namespace oscar
