// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits, clip ratios and windows of all layers together.
#include "calib/auto_plan.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

// A layer whose key KL at 2 bits is `kl` and falls fourfold with each bit.
AutoChoice Layer(double kl) {
  AutoChoice choice;
  choice.made = true;
  choice.windows = {{{64, 256}, 10}, {{0, 0}, 10}, {{128, 1024}, 10}};
  double score = kl;
  for (const int bits : {2, 3, 4}) {
    choice.k_options.push_back({.bits = bits,
                                .clip = {0.92},
                                .score = score,
                                .check = score,
                                .ratios = {0.9, 0.92},
                                .curve = {score * 1.1, score},
                                .in_windows = {score, 10 * score, 0.5 * score}});
    choice.v_options.push_back({.bits = bits,
                                .clip = {0.9},
                                .score = 0.3 / bits,
                                .check = 0.3,
                                .ratios = {0.9, 0.92},
                                .curve = {0.3 / bits, 0.4 / bits}});
    score /= 4;
  }
  return choice;
}

std::vector<int> KBits(const std::vector<AutoChoice>& choices) {
  std::vector<int> bits;
  for (const AutoChoice& choice : choices) bits.push_back(choice.k_bits);
  return bits;
}

const std::vector<LayerElements> kThree(3, {.k = 256, .v = 256});

TEST(AutoPlan, TwoBitsAreTwoBits) {
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  const AutoPlan plan = PlanLayers({.bits = 2}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(plan.bits, 2);
  EXPECT_EQ(plan.windows.recent, 256);
  ASSERT_EQ(plan.window_scores.size(), 3u);
  EXPECT_NEAR(plan.window_scores[0], 0.41 / 3, 1e-12);
}

TEST(AutoPlan, KeysOfTheWorstLayersGetTheFirstBits) {
  // A third of a bit per element: one bit for the keys of two layers. The worst layer's second bit
  // (0.3 / 4 -> 0.3 / 16: 0.056) is worth less than the first of the next (0.1 -> 0.025: 0.075).
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  const AutoPlan plan = PlanLayers({.bits = 2 + 1.0 / 3}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<int>{3, 2, 3}));
  for (const AutoChoice& choice : choices) EXPECT_EQ(choice.v_bits, 2);
  EXPECT_NEAR(plan.bits, 2 + 1.0 / 3, 1e-12);
}

TEST(AutoPlan, ValuesWaitUntilKeysHaveFour) {
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  PlanLayers({.bits = 3.2}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<int>{4, 4, 4}));
  int v_bits = 0;
  for (const AutoChoice& choice : choices) v_bits += choice.v_bits;
  EXPECT_EQ(v_bits, 7);  // 0.2 of 6 elements' bits: one bit for one layer
}

TEST(AutoPlan, NeverSpendsMoreThanTheBudget) {
  for (double bits = 2; bits <= 4; bits += 0.13) {
    std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
    EXPECT_LE(PlanLayers({.bits = bits}, kThree, choices).bits, bits + 1e-9);
  }
}

TEST(AutoPlan, WindowsChangeOnlyIfAskedAndWithinTheBudget) {
  const auto windows = [](bool choose, double bits) {
    std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
    return PlanLayers({.bits = bits, .windows = choose}, kThree, choices).windows.recent;
  };
  const double price = WindowBits({128, 1024}) - WindowBits({64, 256});
  EXPECT_NEAR(price, 14.0 * 832 / 32768, 1e-12);
  EXPECT_EQ(windows(false, 2 + price), 256);
  EXPECT_EQ(windows(true, 2 + 0.9 * price), 256);
  // Enough for the windows, where it halves the KL, and for two layers' keys, where it does more.
  EXPECT_EQ(windows(true, 2 + price), 256);
  // All keys have their bits, and the windows are worth more than bits of values.
  EXPECT_EQ(windows(true, 3 + price), 1024);
}

TEST(AutoPlan, OneRatioForAllLayersWhereAConsumerTakesNoMore) {
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  choices[2].k_options[0].curve = {0.3, 0.9};  // the worst layer wants .90
  PlanLayers({.consumer = Consumer::kSglang}, kThree, choices);
  for (const AutoChoice& choice : choices) {
    EXPECT_EQ(choice.k_option().clip, std::vector<double>{0.90});
    EXPECT_EQ(choice.v_option().clip, std::vector<double>{0.90});
  }
  choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  PlanLayers({.consumer = Consumer::kLlamacpp}, kThree, choices);  // and one for both sides
  for (const AutoChoice& choice : choices) {
    EXPECT_EQ(choice.k_option().clip, std::vector<double>{0.92});
    EXPECT_EQ(choice.v_option().clip, std::vector<double>{0.92});
    EXPECT_EQ(choice.v_option().score, 0.2);
  }
}

}  // namespace
}  // namespace oscar
