// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the plan for all layers together: bits, clip ratios and windows.
#include "calib/choose/layer_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calib/choose/bit_allocation.h"

namespace oscar {
namespace {

constexpr double kValueRate = 0.2;  // nats per squared error of values, in all layers

// Returns a layer whose key KL is `kl` at 2 bits and falls to a quarter with each further bit.
AutoChoice Layer(double kl) {
  AutoChoice choice;
  choice.made = true;
  choice.k_output_error = std::sqrt(kValueShare * kl / kValueRate);
  choice.windows = {{{64, 256}, 10}, {{0, 0}, 10}, {{128, 1024}, 10}};
  double score = kl;
  for (const double bits : {2, 3, 4}) {
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

std::vector<double> KBits(const std::vector<AutoChoice>& choices) {
  std::vector<double> bits;
  for (const AutoChoice& choice : choices) bits.push_back(choice.k_bits);
  return bits;
}

const std::vector<LayerElements> kThree(3, {.k = 256, .v = 256});

TEST(AutoPlan, TwoBitsAreTwoBits) {
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  const AutoPlan plan = PlanLayers({.bits = 2}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(plan.bits, 2);
  EXPECT_EQ(plan.windows.recent, 256);
  ASSERT_EQ(plan.window_scores.size(), 3u);
  EXPECT_NEAR(plan.window_scores[0], 0.41 / 3, 1e-12);
}

TEST(AutoPlan, KeysOfTheWorstLayersGetTheFirstBits) {
  // A third of a bit per element pays for one more key bit in two layers. The worst layer's second
  // extra bit (0.3 / 4 -> 0.3 / 16) saves 0.056, the next layer's first (0.1 -> 0.025) 0.075.
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  const AutoPlan plan = PlanLayers({.bits = 2 + 1.0 / 3}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<double>{3, 2, 3}));
  for (const AutoChoice& choice : choices) EXPECT_EQ(choice.v_bits, 2);
  EXPECT_NEAR(plan.bits, 2 + 1.0 / 3, 1e-12);
}

// Values have errors of 0.15, 0.1 and 0.075 at 2, 3 and 4 bits and cost 0.2 of their squares, so
// the third bit saves 0.0025. That is less than the fourth key bit of the first and last layers
// (0.019 and 0.056) and the third of the middle one (0.0075), but more than its fourth (0.0019).
TEST(AutoPlan, ValuesComeWhenKeysGainLess) {
  const auto choose = [](double bits) {
    std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
    PlanLayers({.bits = bits}, kThree, choices);
    return choices;
  };
  std::vector<AutoChoice> choices = choose(2 + 5.0 / 6);
  EXPECT_EQ(KBits(choices), (std::vector<double>{4, 3, 4}));
  for (const AutoChoice& choice : choices) EXPECT_EQ(choice.v_bits, 2);
  choices = choose(2 + 8.0 / 6);
  EXPECT_EQ(KBits(choices), (std::vector<double>{4, 3, 4}));
  for (const AutoChoice& choice : choices) EXPECT_EQ(choice.v_bits, 3);
  EXPECT_EQ(KBits(choose(2 + 9.0 / 6)), (std::vector<double>{4, 4, 4}));
}

// Prices by next-token KL replace those by attention error, and include the worst hundredth of the
// tokens besides the mean. With uniform prices, all layers get the same bits.
TEST(AutoPlan, BitsHaveAPrice) {
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  for (AutoChoice& choice : choices) {
    for (std::vector<SideOption>* options : {&choice.k_options, &choice.v_options})
      for (SideOption& option : *options) option.next_token_kl = {0.001 / option.bits, 0};
  }
  choices[1].v_options[0].next_token_kl = {0.02, 0};   // at 2 bits
  choices[2].k_options[0].next_token_kl = {0.001, 3};  // rare but large
  const double two_more = 2 + 2.0 / 6;
  PlanLayers({.bits = two_more, .price = BitPrice::kNextToken}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<double>{2, 2, 3}));
  EXPECT_EQ(choices[1].v_bits, 3);
  PlanLayers({.bits = 3, .price = BitPrice::kUniform}, kThree, choices);
  EXPECT_EQ(KBits(choices), (std::vector<double>{3, 3, 3}));
  for (const AutoChoice& choice : choices) EXPECT_EQ(choice.v_bits, 3);
}

// The budget includes scales and zeros. Keys have 64 dimensions and values 32, with one scale and
// zero per row or per 16 values.
TEST(AutoPlan, TheBudgetHoldsMetadata) {
  const LayerElements whole = ElementsOf(2, 64, 32, {}), groups = ElementsOf(2, 64, 32, {16});
  EXPECT_EQ(whole.k, 128);
  EXPECT_EQ(whole.v, 64);
  EXPECT_EQ(whole.metadata_bits, 2 * 2 * 32);
  EXPECT_EQ(groups.metadata_bits, 2 * (4 + 2) * 32);
  EXPECT_EQ(LeastStoredBits({{.k = 256, .v = 256, .metadata_bits = 128}}), 2.25);
  // In OSCAR's cache, scales and zeros have 32 bits each.
  const auto oscar = [](const LayerElements& layer) {
    return StoredBits({.bits = kOscarsBits}, {layer});
  };
  EXPECT_EQ(oscar({.k = 256, .v = 256, .metadata_bits = 128, .oscar_bits = 256}), 2.5);
  const LayerElements bytes = ElementsOf(2, 64, 32, {.bytes = true});
  EXPECT_EQ(bytes.metadata_bits, 2 * 2 * 16);
  EXPECT_EQ(oscar(bytes), oscar(whole));
  EXPECT_DOUBLE_EQ(oscar(whole), 2 + 8 * 32.0 / 192);
  EXPECT_EQ(oscar(LatentElementsOf(512, 64, {})), (512 * 2 + 64 + 64 * 16) / 576.0);
  const std::vector<LayerElements> layers(3, {.k = 256, .v = 256, .metadata_bits = 128});
  const auto plan = [&](double bits) {
    std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
    return PlanLayers({.bits = bits}, layers, choices);
  };
  EXPECT_EQ(plan(2).bits, 2);
  EXPECT_EQ(plan(2).stored_bits, 2.25);
  EXPECT_EQ(plan(2.25).stored_bits, 2.25);
  EXPECT_NEAR(plan(2.25 + 1.0 / 6).bits, 2 + 1.0 / 6, 1e-12);
  for (double bits = 2.25; bits <= 4; bits += 0.13) EXPECT_LE(plan(bits).stored_bits, bits + 1e-9);
}

TEST(AutoPlan, AlikeLayersGetEqualBits) {
  for (const int bits : {2, 3, 4}) {
    std::vector<AutoChoice> choices(3, Layer(0.1));
    for (AutoChoice& choice : choices) {
      for (size_t i = 0; i < choice.v_options.size(); ++i)
        choice.v_options[i].score = std::sqrt(choice.k_options[i].score / kValueRate);
    }
    PlanLayers({.bits = static_cast<double>(bits)}, kThree, choices);
    for (const AutoChoice& choice : choices) {
      EXPECT_EQ(choice.k_bits, bits);
      EXPECT_EQ(choice.v_bits, bits);
    }
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
  // This budget pays either for larger windows, which halve the KL, or for bits for the keys of two
  // layers, which save more.
  EXPECT_EQ(windows(true, 2 + price), 256);
  // The keys have enough bits here, and larger windows are worth more than bits for values.
  EXPECT_EQ(windows(true, 3 + price), 1024);
}

TEST(AutoPlan, OneRatioForAllLayersWhereAConsumerTakesNoMore) {
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  choices[2].k_options[0].curve = {0.3, 0.9};  // the worst layer is best at .90
  PlanLayers({.consumer = Consumer::kSglang}, kThree, choices);
  for (const AutoChoice& choice : choices) {
    EXPECT_EQ(choice.k_option().clip, std::vector<double>{0.90});
    EXPECT_EQ(choice.v_option().clip, std::vector<double>{0.90});
  }
  choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  PlanLayers({.consumer = Consumer::kLlamacpp}, kThree, choices);  // one ratio for both sides
  for (const AutoChoice& choice : choices) {
    EXPECT_EQ(choice.k_option().clip, std::vector<double>{0.92});
    EXPECT_EQ(choice.v_option().clip, std::vector<double>{0.92});
    EXPECT_EQ(choice.v_option().score, 0.2);
  }
}

// A latent row is both key and value: 16 values at 2 bits with a 16-bit scale and zero, and 8
// position values at 16 bits. That makes 192 bits for 24 elements.
TEST(AutoPlan, LatentsHaveOneNumberOfBits) {
  const LayerElements latent = LatentElementsOf(16, 8, {});
  EXPECT_NEAR(LeastStoredBits({latent}), 8, 1e-12);
  EXPECT_NEAR(LeastStoredBits({LatentElementsOf(512, 64, {128})}), (512 * 2.25 + 64 * 16) / 576,
              1e-12);
  std::vector<AutoChoice> choices = {Layer(0.1), Layer(0.01), Layer(0.3)};
  for (AutoChoice& choice : choices) {
    choice.position_dim = 8;
    for (size_t i = 0; i < 3; ++i) choice.v_options[i].clip = choice.k_options[i].clip;
  }
  // The budget allows one more bit for the 16 values of two layers.
  const AutoPlan plan = PlanLayers({.bits = 8 + 2 * 16 / 72.0}, {latent, latent, latent}, choices);
  EXPECT_EQ(KBits(choices), (std::vector<double>{3, 2, 3}));
  for (const AutoChoice& choice : choices) EXPECT_EQ(choice.v_bits, choice.k_bits);
  EXPECT_NEAR(plan.stored_bits, 8 + 2 * 16 / 72.0, 1e-12);
  EXPECT_NEAR(plan.bits, 8.0 / 3, 1e-12);
}

}  // namespace
}  // namespace oscar
