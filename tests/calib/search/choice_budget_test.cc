// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the options that a layer's search offers to the plan for all layers: bits of sides and of
// KV heads, and clip ratios of heads. Also tests which orders of the factors it tries.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "calib/choose/choice_points.h"
#include "tests/calib/search/searched_layer.h"

namespace oscar {
namespace {

using namespace searched;  // NOLINT: of searched_layer.h

TEST(AutoSearch, UnderABudgetTheArmIsMeasuredAtAllBits) {
  CalibrationOptions options = Options();
  options.automatic.bits = 3.5;
  options.automatic.head_bits = false;
  const LayerResult result = Processed(Layer(false), options);
  ASSERT_EQ(result.auto_arms.size(), 8u);  // 3 x 3 points except that of `auto`
  const auto kl = [&](double k_bits, double v_bits) {
    const ChoicePoint point{k_bits, v_bits, 0, 0};
    return std::ranges::find(result.auto_arms, point, &AutoArm::point)->arm;
  };
  EXPECT_EQ(kl(2, 3).kl_mean, KlOf(result, "auto"));  // values do not affect the KL
  EXPECT_LT(kl(3, 2).kl_mean, 0.6 * kl(2, 3).kl_mean);
  EXPECT_LT(kl(4, 2).kl_mean, 0.6 * kl(3, 2).kl_mean);
  EXPECT_LT(kl(4, 3).output_rel_error, kl(4, 2).output_rel_error);
}

// Head 1 has small queries, so errors in its keys hardly matter and head 0 gets its bits. More bits
// are better, even if only some heads get them.
TEST(AutoSearch, UnderABudgetHeadsMayHaveBitsOfTheirOwn) {
  GoldenLayer layer = Layer(false);
  for (at::Tensor& q : layer.q) q.narrow(1, 2, 2).mul_(0.2);
  CalibrationOptions options = Options();
  options.automatic.bits = 3.5;
  options.automatic.head_bits = true;
  const LayerResult result = Processed(layer, options);
  const auto& k_options = result.automatic.k_options;
  ASSERT_EQ(k_options.size(), 5u);
  EXPECT_EQ(k_options[2].head_bits, (std::vector<int>{4, 2}));
  const auto kl = [&](double k_bits) {
    const ChoicePoint point{k_bits, 2, 0, 0};
    if (point == PointOf(options.automatic, result.automatic)) return KlOf(result, "auto");
    return std::ranges::find(result.auto_arms, point, &AutoArm::point)->arm.kl_mean;
  };
  for (size_t i = 1; i < k_options.size(); ++i) {
    EXPECT_LT(k_options[i].in_windows.at(0), k_options[i - 1].in_windows.at(0));
    EXPECT_LT(kl(k_options[i].bits), kl(k_options[i - 1].bits)) << k_options[i].bits;
  }
  EXPECT_LT(kl(2.5), 0.6 * kl(2));  // half a bit more, most of the gain
  EXPECT_EQ((result.auto_arms.size() + 1) % k_options.size(), 0u);
  options.automatic.bits = 2;
  EXPECT_EQ(Searched(Observe(layer, kSplit, 64), layer.spec, options).k_options.size(), 3u);
}

TEST(AutoSearch, ClipRatiosOfHeadsOnlyWhereTheyAreWanted) {
  CalibrationOptions options = Options();
  const GoldenLayer layer = Layer(true);
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  EXPECT_EQ(Searched(observed, layer.spec, options).k_option().clip.size(), 2u);
  options.automatic.head_clip = false;
  const AutoChoice shared = Searched(observed, layer.spec, options);
  EXPECT_EQ(shared.k_option().clip.size(), 1u);
  EXPECT_EQ(shared.v_option().clip.size(), 1u);
}

TEST(AutoSearch, OtherOrdersOfTheFactorsAreTried) {
  CalibrationOptions options = Options();
  const GoldenLayer layer = Layer(true);
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  const auto orders = [&](const std::string& side) {
    std::set<std::string> names;
    for (const CandidateScore& score : Searched(observed, layer.spec, options).scores) {
      if (score.side == side) names.insert(score.recipe.substr(score.recipe.rfind(' ') + 1));
    }
    return names;
  };
  EXPECT_EQ(orders("k"), (std::set<std::string>{"h_pbr", "r_h_pbr", "br_h128"}));
  options.fit.composition = Composition::kBrH128;
  EXPECT_EQ(orders("k"), (std::set<std::string>{"h_pbr", "r_h_pbr", "br_h128"}));
  options.clip.quant_group_size = 16;  // P decides which values share a scale
  EXPECT_EQ(orders("k"), (std::set<std::string>{"h_pbr", "r_h_pbr", "br_h128", "r_h"}));
}

}  // namespace
}  // namespace oscar
