// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice on layers whose best transform is known.
#include "calib/auto_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calib/attention_error.h"
#include "calib/auto_cache.h"
#include "calib/auto_plan.h"
#include "calib/auto_points.h"
#include "calib/auto_scorer.h"
#include "calib/process_layer.h"
#include "linalg/error.h"
#include "tests/calib/golden_layer.h"

namespace oscar {
namespace {

constexpr int64_t kDim = 32;

// A layer with a rope, whose RoPE pairs of keys may be scaled up and of queries down.
GoldenLayer Layer(bool outliers) {
  GoldenLayer layer = RandomLayer(4, 2, kDim, 16, {320, 320, 320, 320}, {}, 7);
  layer.spec.attention.rope.rotary_dim = kDim;
  if (!outliers) return layer;
  at::Tensor scale = at::ones({kDim}, at::kDouble);
  for (const int64_t pair : {1, 6, 11}) {
    for (const int64_t channel : {pair, pair + kDim / 2}) scale[channel] = 16;
  }
  for (at::Tensor& k : layer.k) k = k.mul(scale);
  for (at::Tensor& q : layer.q) q = q.div(scale);
  return layer;
}

CalibrationOptions Options(Consumer consumer = Consumer::kAny) {
  CalibrationOptions options;
  options.sink_tokens = 4;
  options.recent_tokens = 16;
  options.automatic.enabled = true;
  options.automatic.consumer = consumer;
  return options;
}

// The last sequence is held out.
const HeldOutSplit kSplit = {HeldOutKind::kDocuments, {320, 320, 320, 0}, 320};

LayerResult Processed(const GoldenLayer& layer, const CalibrationOptions& options) {
  PhaseTimes times;
  return ProcessLayer(Observe(layer, kSplit, 64), layer.spec, kSplit, options, times);
}

double KlOf(const LayerResult& result, const std::string& arm) {
  return std::ranges::find(result.arms, arm, &ArmResult::name)->kl_mean;
}

TEST(AutoSearch, OutliersDoNotChangeWhatIsReached) {
  const LayerResult plain = Processed(Layer(false), Options());
  const LayerResult outliers = Processed(Layer(true), Options());
  EXPECT_GT(KlOf(outliers, "oscar_per_head"), 1.2 * KlOf(plain, "oscar_per_head"));
  // Either choice may stop short of its best by kWorthwhile at each step, and be another recipe.
  EXPECT_NEAR(KlOf(outliers, "auto") / KlOf(plain, "auto"), 1, 4 * kWorthwhile);
  EXPECT_LT(KlOf(outliers, "auto"), KlOf(outliers, "oscar_per_head"));
}

TEST(AutoSearch, ChoosesWhatTheConsumerLoads) {
  // Keys with a mean, and heads that ask for different transforms.
  GoldenLayer layer = Layer(true);
  at::Tensor scale = at::ones({2, kDim}, at::kDouble), mean = at::zeros({2, kDim}, at::kDouble);
  for (const int64_t head : {0, 1}) {
    for (const int64_t pair : {2 + head, 8 + head}) {
      for (const int64_t channel : {pair, pair + kDim / 2}) scale[head][channel] = 12;
    }
    mean[head].narrow(0, 4 * head, 8).fill_(6);
  }
  for (at::Tensor& k : layer.k) k = k.mul(scale).add(mean);
  for (at::Tensor& q : layer.q) q = q.div(scale.repeat_interleave(2, 0));
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  const AutoChoice free = SearchChoice(observed, layer.spec, Options());
  ASSERT_TRUE(free.keys.centred);  // so that what consumers cannot load would be chosen
  ASSERT_TRUE(free.keys.per_head);
  for (const ConsumerRules& rules : AllConsumers()) {
    for (const bool fold : {false, true}) {
      CalibrationOptions options = Options(rules.consumer);
      options.automatic.fold = fold;
      const AutoChoice choice = SearchChoice(observed, layer.spec, options);
      EXPECT_TRUE(rules.per_head || !choice.keys.per_head) << rules.name;
      EXPECT_TRUE(rules.per_head || !choice.values.per_head) << rules.name;
      EXPECT_TRUE(rules.key_mean || !choice.keys.centred) << rules.name;
      const bool own_queries =
          choice.keys.kind == KeyTransformKind::kBalanced || !choice.keys.folded;
      EXPECT_TRUE(rules.query_matrix || !own_queries) << rules.name;
      if (!rules.query_matrix) {  // folding is the only way to scale keys
        EXPECT_EQ(choice.keys.kind, fold ? KeyTransformKind::kPairScaled : KeyTransformKind::kOscar)
            << rules.name;
      }
      EXPECT_EQ(choice.k_option().clip.size(), rules.clip == ClipScope::kHead ? 2u : 1u);
      EXPECT_EQ(choice.k_options.size(), rules.any_bits ? 3u : 1u);
    }
  }
}

// A consumer with one ratio for all layers: whatever the plan makes of a layer has been measured.
TEST(AutoSearch, TheArmIsMeasuredWhereTheConsumerTakesOneRatio) {
  const GoldenLayer layer = Layer(true);
  for (const Consumer consumer : {Consumer::kSglangOct, Consumer::kLlamacpp}) {
    const CalibrationOptions options = Options(consumer);
    const bool one_ratio = consumer == Consumer::kLlamacpp;
    const LayerResult result = Processed(layer, options);
    const std::vector<double>& ratios = SharedRatios();
    EXPECT_EQ(result.auto_arms.size() + 1,
              one_ratio ? ratios.size() : ratios.size() * ratios.size());
    EXPECT_EQ(result.automatic.k_option().ratios, ratios);
    EXPECT_EQ(result.automatic.v_option().ratios, ratios);
    const SideOption& keys = result.automatic.k_option();
    EXPECT_EQ(keys.score, *std::ranges::min_element(keys.curve));
    EXPECT_TRUE(!one_ratio || result.automatic.k_option().clip == result.automatic.v_option().clip);
    // Another layer draws the ratios away from this one's.
    AutoChoice other = result.automatic;
    for (auto* side : {&other.k_options, &other.v_options})
      side->front().curve = {100, 100, 100, 0};
    ASSERT_NE(result.automatic.k_option().clip[0], 0.94);
    std::vector<AutoChoice> choices = {result.automatic, other};
    PlanLayers(options.automatic, {{1, 1}, {1, 1}}, choices);
    const ChoicePoint to = PointOf(options.automatic, choices[0]);
    EXPECT_EQ(to, (ChoicePoint{2, 2, 0.94, 0.94}));
    const auto measured = std::ranges::find(result.auto_arms, to, &AutoArm::point);
    ASSERT_NE(measured, result.auto_arms.end());
    // The same arm by itself, of the judged fit: the search's, on the rows that are fitted to.
    const ObservedLayer observed = Observe(layer, kSplit, 64);
    AutoChoice judged = SearchChoice(observed, layer.spec, options);
    judged.k_option().SetRatio(0.94);
    judged.v_option().SetRatio(0.94);
    const ArmResult alone =
        MeasureAttentionError(observed, layer.spec,
                              {{.name = "auto", .choice = &judged, .point = to}}, options)
            .at(0);
    EXPECT_EQ(measured->arm.kl_mean, alone.kl_mean);
    EXPECT_EQ(measured->arm.output_rel_error, alone.output_rel_error);
    EXPECT_NE(measured->arm.kl_mean, result.arms.back().kl_mean);
    EXPECT_NE(measured->arm.output_rel_error, result.arms.back().output_rel_error);
    // Its scores are those of that ratio, too.
    EXPECT_EQ(choices[0].k_option().score, result.automatic.k_option().curve.at(3));
    EXPECT_EQ(choices[0].k_option().check, result.automatic.k_option().check_curve.at(3));
    EXPECT_EQ(choices[0].k_option().in_windows, result.automatic.k_option().windows_curve.at(3));
  }
}

TEST(AutoSearch, UnderABudgetTheArmIsMeasuredAtAllBits) {
  CalibrationOptions options = Options();
  options.automatic.bits = 3.5;
  const LayerResult result = Processed(Layer(false), options);
  ASSERT_EQ(result.auto_arms.size(), 8u);  // 3 x 3 and the one that `auto` is
  const auto kl = [&](int k_bits, int v_bits) {
    const ChoicePoint point{k_bits, v_bits, 0, 0};
    return std::ranges::find(result.auto_arms, point, &AutoArm::point)->arm;
  };
  EXPECT_EQ(kl(2, 3).kl_mean, KlOf(result, "auto"));  // values do not change scores
  EXPECT_LT(kl(3, 2).kl_mean, 0.6 * kl(2, 3).kl_mean);
  EXPECT_LT(kl(4, 2).kl_mean, 0.6 * kl(3, 2).kl_mean);
  EXPECT_LT(kl(4, 3).output_rel_error, kl(4, 2).output_rel_error);
}

TEST(AutoSearch, NothingIsFoldedWithoutAKnownRope) {
  GoldenLayer layer = Layer(true);
  layer.spec.attention.rope.rotary_dim = 0;  // as of a dump
  const AutoChoice choice =
      SearchChoice(Observe(layer, kSplit, 64), layer.spec, Options(Consumer::kSglang));
  EXPECT_EQ(choice.keys.kind, KeyTransformKind::kOscar);
}

TEST(AutoSearch, IsDeterministicAndKeepsEveryScore) {
  const GoldenLayer layer = Layer(true);
  const AutoChoice a = SearchChoice(Observe(layer, kSplit, 64), layer.spec, Options());
  const AutoChoice b = SearchChoice(Observe(layer, kSplit, 64), layer.spec, Options());
  EXPECT_EQ(ChoiceToJson(a).dump(), ChoiceToJson(b).dump());
  std::set<std::string> recipes;
  double best = 1e9;
  for (const CandidateScore& score : a.scores) {
    if (score.side != "k") continue;
    recipes.insert(score.recipe);
    EXPECT_GT(score.score, 0);
    EXPECT_NE(score.score, score.check);  // of other rows
    if (score.bits == 2 && score.quant_group_size == 0) best = std::min(best, score.score);
  }
  EXPECT_GE(recipes.size(), 12u);
  EXPECT_LE(a.k_options.at(0).score, (1 + 2 * kWorthwhile) * best);  // one ratio per head
}

TEST(AutoSearch, MoreBitsAndLargerWindowsAreBetter) {
  const AutoChoice choice =
      SearchChoice(Observe(Layer(false), kSplit, 64), Layer(false).spec, Options());
  ASSERT_EQ(choice.k_options.size(), 3u);
  EXPECT_LT(choice.k_options[1].score, 0.6 * choice.k_options[0].score);
  EXPECT_LT(choice.k_options[2].score, 0.6 * choice.k_options[1].score);
  EXPECT_LT(choice.v_options[1].score, choice.v_options[0].score);
  ASSERT_EQ(choice.windows.at(0).windows.recent, 16);
  ASSERT_EQ(choice.windows.at(1).windows.recent, 0);
  EXPECT_GT(choice.k_options[0].in_windows.at(1), choice.k_options[0].in_windows.at(0));
}

// Against a Hadamard that is already as good as it gets, nothing that costs more is chosen.
TEST(AutoSearch, NeverWorseThanHadamardOnJudgingRows) {
  for (const bool outliers : {false, true}) {
    const AutoChoice choice =
        SearchChoice(Observe(Layer(outliers), kSplit, 64), Layer(outliers).spec, Options());
    if (choice.k_fallback.empty()) {
      EXPECT_LE(choice.k_check, choice.k_hadamard);
    } else {
      EXPECT_EQ(choice.keys.composition, Composition::kHPbr);
      EXPECT_EQ(choice.keys.kind, KeyTransformKind::kOscar);
    }
    if (choice.v_fallback.empty()) {
      EXPECT_LE(choice.v_check, choice.v_hadamard);
    } else {
      EXPECT_EQ(choice.values.composition, Composition::kHPbr);
    }
  }
}

// Halves of one kind of text, and one half without the outlier channels of the other and of what is
// held out: its fit costs.
TEST(AutoSearch, HalvesThatAskForOtherFitsAreUnstable) {
  const HeldOutSplit split = {HeldOutKind::kDocuments, {700, 700, 700, 0}, 320};
  GoldenLayer layer = RandomLayer(4, 2, kDim, 16, {700, 700, 700, 320}, {}, 7);
  layer.spec.attention.rope.rotary_dim = kDim;
  const Stability same = SearchChoice(Observe(layer, split, 64), layer.spec, Options()).stability;
  EXPECT_TRUE(same.measured);
  EXPECT_FALSE(same.few_tokens);
  EXPECT_FALSE(same.unstable) << same.k_cost << " " << same.v_cost;
  at::Tensor scale = at::ones({kDim}, at::kDouble);
  for (const int64_t pair : {1, 6, 11}) {
    for (const int64_t channel : {pair, pair + kDim / 2}) scale[channel] = 16;
  }
  for (const size_t i : {0, 1, 3}) {  // the other half is the third text
    layer.k[i] = layer.k[i].mul(scale);
    layer.q[i] = layer.q[i].div(scale);
  }
  const Stability other = SearchChoice(Observe(layer, split, 64), layer.spec, Options()).stability;
  EXPECT_GT(other.k_cost, kStableCost);
  EXPECT_TRUE(other.unstable);
  EXPECT_FALSE(other.few_tokens);
  // One text is no two halves.
  const GoldenLayer few = Layer(false);
  HeldOutSplit some = kSplit;
  some.fit_rows = {320, 0, 0, 0};
  some.held_out_tokens = 960;
  EXPECT_TRUE(SearchChoice(Observe(few, some, 64), few.spec, Options()).stability.few_tokens);
}

TEST(AutoSearch, ShortTextsAreScoredWithEverythingQuantized) {
  const GoldenLayer layer = Layer(false);
  CalibrationOptions options = Options();
  options.recent_tokens = 4096;
  const AutoChoice choice = SearchChoice(Observe(layer, kSplit, 64), layer.spec, options);
  EXPECT_TRUE(choice.rows_in_windows);
  EXPECT_GT(choice.k_options.at(0).score, 0);
}

// The scorer's arithmetic is that of the arm which is measured in the end.
TEST(AutoScorer, AgreesWithTheMeasuredArm) {
  const GoldenLayer layer = Layer(true);
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  const CalibrationOptions options = Options();
  AutoChoice choice = SearchChoice(observed, layer.spec, options);
  FitChoice(observed.fit, layer.spec, choice);
  const std::vector<ArmResult> arms =
      MeasureAttentionError(observed, layer.spec, {{.name = "auto", .choice = &choice}}, options);
  const AutoScorer scorer(observed, layer.spec, {{4, 16}});
  const AutoScorer::Rotated keys = scorer.RotateKeys(choice.k);
  const double kl = scorer.ScoreWindows(keys, {2, choice.k_option().clip, 0}).at(0);
  // The scorer leaves out rows inside the windows, which have next to no error.
  EXPECT_NEAR(kl * static_cast<double>(scorer.rows()),
              arms.at(0).kl_mean * static_cast<double>(arms.at(0).rows), 0.01 * kl * 64);
}

}  // namespace
}  // namespace oscar
