// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the allocation of bits by marginal damage.
#include "calib/choose/bit_allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "calib/choose/head_bits.h"

namespace oscar {
namespace {

// Returns a part whose damage at b bits is c 4^-b, as for a uniform quantizer.
BitPart Part(double c, double elements = 1, std::vector<double> bits = {2, 3, 4, 5, 6}) {
  BitPart part{.elements = elements, .points = {}};
  for (const double b : bits) part.points.push_back({b, c * std::pow(4.0, -b)});
  return part;
}

double Spent(const std::vector<BitPart>& parts, const std::vector<double>& bits) {
  double spent = 0;
  for (size_t i = 0; i < parts.size(); ++i) spent += parts[i].elements * bits[i];
  return spent;
}

double Damage(const std::vector<BitPart>& parts, const std::vector<double>& bits) {
  double damage = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    damage += std::ranges::find(parts[i].points, bits[i], &BitPoint::bits)->damage;
  return damage;
}

// Returns the least damage of all allocations within the budget, by exhaustive search.
double LeastDamage(const std::vector<BitPart>& parts, double budget) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<size_t> at(parts.size(), 0);
  while (true) {
    double spent = 0, damage = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      spent += parts[i].elements * parts[i].points[at[i]].bits;
      damage += parts[i].points[at[i]].damage;
    }
    if (spent <= budget + 1e-9) least = std::min(least, damage);
    size_t i = 0;
    while (i < parts.size() && ++at[i] == parts[i].points.size()) at[i++] = 0;
    if (i == parts.size()) return least;
  }
}

// Reverse water-filling gives b_i = B + log4(c_i / geometric mean), which is a whole number for
// these powers of four.
TEST(BitAllocation, IsReverseWaterFilling) {
  const std::vector<BitPart> parts = {Part(1), Part(4), Part(16), Part(4)};
  EXPECT_EQ(AllocateBits(parts, 4 * 3), (std::vector<double>{2, 3, 4, 3}));
  EXPECT_EQ(AllocateBits(parts, 4 * 4), (std::vector<double>{3, 4, 5, 4}));
}

// A part with twice the elements pays twice for each bit, so it needs twice the damage to get one.
TEST(BitAllocation, APartPaysForItsElements) {
  const std::vector<BitPart> parts = {Part(8, 2), Part(4, 1)};
  // Both slopes are 3 / 16: (8 / 16 - 8 / 64) / 2 and 4 / 16 - 4 / 64. The first part wins the tie,
  // and the second one gets the bit if the first does not fit.
  EXPECT_EQ(AllocateBits(parts, 3 * 2 + 2), (std::vector<double>{3, 2}));
  EXPECT_EQ(AllocateBits(parts, 3 * 2 + 1), (std::vector<double>{2, 3}));
}

TEST(BitAllocation, StepsOverPointsAboveTheHull) {
  // In the first part, 2 -> 4 saves 0.4 per bit and 2 -> 3 nothing. The second part saves 0.3 per
  // bit.
  const std::vector<BitPart> parts = {{1, {{2, 1.0}, {3, 1.0}, {4, 0.2}}},
                                      {1, {{2, 0.6}, {3, 0.3}}}};
  EXPECT_EQ(AllocateBits(parts, 6), (std::vector<double>{4, 2}));
  EXPECT_EQ(AllocateBits(parts, 5), (std::vector<double>{2, 3}));
  // A step that increases the damage is never taken.
  const std::vector<BitPart> worse = {{1, {{2, 1.0}, {3, 1.5}}}};
  EXPECT_EQ(AllocateBits(worse, 10), std::vector<double>{2});
}

TEST(BitAllocation, NeverAboveTheBudgetNeverWorseWithMoreAndBestOnTheHull) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<BitPart> parts;
    for (int i = 0; i < 5; ++i) {
      BitPart part{.elements = i < 3 ? 64.0 : 96.0, .points = {}};
      double damage = std::exp(6 * uniform(random) - 6);
      for (const double bits : {2, 3, 4}) {
        part.points.push_back({bits, damage});
        damage *= 0.1 + 0.8 * uniform(random);
      }
      parts.push_back(part);
    }
    double before = std::numeric_limits<double>::infinity();
    double elements = 0, steepest = 0;
    for (const BitPart& part : parts) elements += part.elements;
    for (double bits = 2; bits <= 4.1; bits += 0.07) {
      const double budget = bits * elements;
      const std::vector<double> chosen = AllocateBits(parts, budget);
      const double damage = Damage(parts, chosen);
      EXPECT_LE(Spent(parts, chosen), budget + 1e-6);
      EXPECT_LE(damage, before);
      before = damage;
      // The distance to the optimum is at most the unspent budget times the steepest slope.
      if (bits == 2) {
        for (const BitPart& part : parts)
          steepest =
              std::max({steepest, (part.points[0].damage - part.points[1].damage) / part.elements,
                        (part.points[0].damage - part.points[2].damage) / part.elements / 2});
      }
      EXPECT_LE(damage,
                LeastDamage(parts, budget) + steepest * (budget - Spent(parts, chosen)) + 1e-12);
    }
  }
}

// Returns options of 2, 3 and 4 bits for two heads. Each bit multiplies the first head's score by
// `first_falls` and the second's by 0.25.
std::vector<SideOption> WholeBits(double first, double second, double first_falls) {
  std::vector<SideOption> options;
  for (const double bits : {2, 3, 4}) {
    const std::vector<double> scores = {first * std::pow(first_falls, bits - 2),
                                        second * std::pow(0.25, bits - 2)};
    options.push_back({.bits = bits,
                       .clip = {0.9 + bits / 100},
                       .score = (scores[0] + scores[1]) / 2,
                       .check = (scores[0] + scores[1]) / 2,
                       .head_score = scores,
                       .head_check = scores});
  }
  return options;
}

// Returns scores in two windows [options][2][heads]; those in the second window are half as large.
std::vector<std::vector<std::vector<double>>> Windows(const std::vector<SideOption>& options) {
  std::vector<std::vector<std::vector<double>>> windows;
  for (const SideOption& option : options) {
    windows.push_back({option.head_score, option.head_score});
    for (double& score : windows.back()[1]) score /= 2;
  }
  return windows;
}

TEST(HeadBitsOfAChoice, TheWorseHeadIsGivenMoreAtEqualMeans) {
  std::vector<SideOption> options = WholeBits(8, 0.1, 0.25);
  options[2].clip = {0.99, 0.98};  // one ratio per head
  AddHeadBits(Windows(options), options);
  ASSERT_EQ(options.size(), 5u);  // 2, 2.5, 3, 3.5, 4
  const SideOption &half = options[1], &three = options[2];
  EXPECT_EQ(half.bits, 2.5);
  EXPECT_EQ(half.head_bits, (std::vector<int>{3, 2}));
  EXPECT_EQ(half.Bits(), half.head_bits);
  EXPECT_EQ(half.clip, (std::vector<double>{0.93, 0.92}));
  EXPECT_EQ(half.head_score, (std::vector<double>{2, 0.1}));
  EXPECT_DOUBLE_EQ(half.score, 1.05);
  EXPECT_DOUBLE_EQ(half.in_windows.at(0), 1.05);
  EXPECT_DOUBLE_EQ(half.in_windows.at(1), 0.525);
  // Bits of 4 and 2 replace three bits for both heads.
  EXPECT_EQ(three.head_bits, (std::vector<int>{4, 2}));
  EXPECT_EQ(three.clip, (std::vector<double>{0.99, 0.92}));
  EXPECT_DOUBLE_EQ(three.score, 0.3);
  EXPECT_EQ(options[3].head_bits, (std::vector<int>{4, 3}));
  EXPECT_TRUE(options[4].head_bits.empty());
}

TEST(HeadBitsOfAChoice, HeadsAlikeKeepTheSame) {
  std::vector<SideOption> options = WholeBits(1, 1, 0.25);
  AddHeadBits(Windows(options), options);
  const auto three = std::ranges::find(options, 3, &SideOption::bits);
  EXPECT_TRUE(three->head_bits.empty());
  // Mixed bits are rejected if they gain less than kWorthwhile or lose on the judging rows.
  for (const bool judged : {false, true}) {
    options = WholeBits(8, 0.1, 0.25);
    if (judged) options[1].check = 0.1;
    if (!judged) options[1].score = 0.3;
    AddHeadBits(Windows(options), options);
    EXPECT_TRUE(std::ranges::find(options, 3, &SideOption::bits)->head_bits.empty()) << judged;
  }
  std::vector<SideOption> one = WholeBits(1, 1, 0.25);
  for (SideOption& option : one) {
    option.head_score.resize(1);
    option.head_check.resize(1);
  }
  AddHeadBits({}, one);
  EXPECT_EQ(one.size(), 3u);
}

// The damage of values is the square of their error, so equal scores can give keys and values
// different bits.
TEST(HeadBitsOfAChoice, ValuesGoByTheSquareOfTheirError) {
  std::vector<SideOption> options;
  for (const double bits : {2, 3, 4}) {
    const std::vector<double> scores = {0.3 * std::pow(0.5, bits - 2),
                                        0.2 * std::pow(0.2, bits - 2)};
    options.push_back({.bits = bits,
                       .clip = {0.92},
                       .score = (scores[0] + scores[1]) / 2,
                       .check = 1,
                       .head_score = scores,
                       .head_check = scores});
  }
  std::vector<SideOption> keys = options;
  AddHeadBits({}, options);
  AddHeadBits(Windows(keys), keys);
  EXPECT_EQ(options[1].head_bits, (std::vector<int>{3, 2}));  // saves .0675, not .0384
  EXPECT_EQ(keys[1].head_bits, (std::vector<int>{2, 3}));     // saves .16, not .15
}

// Keys move the output by 0.1 at 0.04 nats. Values that move it by 0.2 have four times that damage,
// times kValueShare.
TEST(ValueDamage, IsWhatKeysPayForTheSameError) {
  EXPECT_DOUBLE_EQ(ValueDamage(0.2, 0.04, 0.1), kValueShare * 0.16);
  EXPECT_EQ(ValueDamage(0.2, 0, 0), 0);
}

}  // namespace
}  // namespace oscar
