// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/linalg/random_values.h"
#include "tests/reference/scalar_kitty.h"
#include "tests/reference/token_norm.h"

namespace oscar {
namespace {

using Codes = std::vector<uint8_t>;
const AffineRule kRule = {
    .family = AffineFamily::kMinOffset, .min_range = 1e-4F, .metadata = StoredFloat::kFloat16};

std::vector<float> Page(const KittyShape& shape, uint64_t seed) {
  const std::vector<double> normal = RandomRows(shape.tokens, shape.channels, seed);
  return {normal.begin(), normal.end()};
}

// 9.5: code 0b1101 is low plane 0b01, high plane 0b11.
TEST(KittyPage, PlanesOfACode) {
  const Codes codes = {0b1101, 2, 0, 0, 0, 0, 0, 1};  // 4 tokens of 2 channels
  const KittyPlanes planes = PackKittyCodes(codes, {true, false});
  EXPECT_EQ(planes.low, (Codes{0b01, 0b01000010}));
  EXPECT_EQ(planes.high, (Codes{0b11}));
  EXPECT_EQ(planes.slots, (Codes{0, 1}));
  EXPECT_EQ(UnpackKittyCodes(planes), codes);
}

TEST(KittyPage, PlanesHoldEveryCodeInTheBytesOfTheLayout) {
  const KittyShape shape = {128, 64};
  for (const double ratio : {0.0, 0.125, 0.25, 1.0}) {
    const KittyPage<float> page = EncodeKittyPage<float>(Page(shape, 3), shape, ratio, kRule);
    const KittyPlanes planes = PackKittyCodes(page.codes, page.boosted);
    EXPECT_EQ(UnpackKittyCodes(planes), page.codes);
    const size_t metadata = 2 * (page.scales.size() + page.offsets.size());
    EXPECT_EQ(static_cast<int64_t>(planes.low.size() + planes.high.size() + planes.slots.size() +
                                   metadata),
              KittyPageBytes(shape, KittyBoostedChannels(ratio, shape.channels)));
  }
}

// 6.2(e): 2.375 bits of K and V without the indices, 8 / 128 bit of a key with them.
TEST(KittyPage, BitsOfAKey) {
  EXPECT_EQ(KittyBoostedChannels(0.125, 128), 16);
  EXPECT_EQ(KittyBoostedChannels(0.25, 128), 32);
  EXPECT_EQ(KittyBoostedChannels(0.2, 128), 25);
  EXPECT_EQ(8.0 * static_cast<double>(KittyPageBytes({128, 128}, 16)) / (128 * 128),
            2.25 + 0.25 + 0.0625);
}

TEST(KittyPage, BoostsTheLargestMeans) {
  const KittyShape shape = {4, 6};
  // Means 1, 3, 2, 3, 0, 1: one large value does not make a channel large.
  const std::vector<float> page = {-1, 3, 8, -3, 0, 1, 1, -3, 0, 3, 0, 1,
                                   1,  3, 0, 3,  0, 1, 1, 3,  0, 3, 0, 1};
  EXPECT_EQ(BoostedChannels<float>(page, shape, 0.5),
            (std::vector<bool>{false, true, true, true, false, false}));
  EXPECT_EQ(BoostedChannels<float>(page, shape, 0.17),  // a tie: the lower channel
            (std::vector<bool>{false, true, false, false, false, false}));
  EXPECT_EQ(BoostedChannels<float>(page, shape, 0), std::vector<bool>(6, false));
}

// 6.2(f): a boosted channel's error is at most (hi - lo) / 30, another's (hi - lo) / 6.
TEST(KittyPage, ErrorIsHalfAStep) {
  const KittyShape shape = {128, 32};
  const std::vector<float> x = Page(shape, 9);
  const KittyPage<float> page = EncodeKittyPage<float>(x, shape, 0.25, kRule);
  std::vector<float> y(x.size());
  DecodeKittyPage<float>(page, y);
  double worst[2] = {};
  for (size_t c = 0; c < 32; ++c) {
    float lo = x[c], hi = x[c], error = 0;
    for (size_t i = c; i < x.size(); i += 32) {
      lo = std::min(lo, x[i]);
      hi = std::max(hi, x[i]);
      error = std::max(error, std::abs(x[i] - y[i]));
    }
    double& side = worst[page.boosted[c] ? 1 : 0];
    side = std::max(side, static_cast<double>(error / (hi - lo)));
  }
  EXPECT_LE(worst[0], 1.0 / 6 + 1e-3);
  EXPECT_LE(worst[1], 1.0 / 30 + 1e-3);
  EXPECT_GT(worst[0], 1.0 / 7);
  EXPECT_GT(worst[1], 1.0 / 35);
}

// The simulator's floor is one of the range, the kernel's one of the scale, and halves differ.
TEST(KittyPage, SimulatorAndKernel) {
  const KittyShape shape = {4, 1};
  const std::vector<float> tiny = {0, 1e-5F, 2e-5F, 3e-5F}, halves = {-1, -0.5F, 0.5F, 2};
  AffineRule kernel = kRule;
  kernel.min_range = 0;
  kernel.min_scale = 1e-6F;
  kernel.rounding = CodeRounding::kHalfUp;
  EXPECT_EQ(EncodeKittyPage<float>(tiny, shape, 0, kRule).codes, (Codes{0, 0, 1, 1}));
  EXPECT_EQ(EncodeKittyPage<float>(tiny, shape, 0, kernel).codes, (Codes{0, 1, 2, 3}));
  EXPECT_EQ(EncodeKittyPage<float>(halves, shape, 0, kRule).codes, (Codes{0, 0, 2, 3}));
  EXPECT_EQ(EncodeKittyPage<float>(halves, shape, 0, kernel).codes, (Codes{0, 1, 2, 3}));
}

TEST(TokenNorm, IsOverAllHeadsAndOneForZeros) {
  EXPECT_EQ(TokenNorm<float>(std::vector<float>{3, 0, 0, -4}), 5);
  EXPECT_EQ(TokenNorm<double>(std::vector<double>(6, 0.0)), 1);
}

}  // namespace
}  // namespace oscar
