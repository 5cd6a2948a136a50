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
  EXPECT_NEAR(KlOf(outliers, "auto") / KlOf(plain, "auto"), 1, 0.01);
  EXPECT_LT(KlOf(outliers, "auto"), KlOf(outliers, "oscar_per_head"));
}

TEST(AutoSearch, ChoosesWhatTheConsumerLoads) {
  const ObservedLayer observed = Observe(Layer(true), kSplit, 64);
  const GoldenLayer layer = Layer(true);
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
