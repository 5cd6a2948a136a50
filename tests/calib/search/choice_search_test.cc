// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the automatic choice on layers whose best transform is known. Longer than 400 lines because
// every rule of the search has a case on the same layers.
#include "calib/search/choice_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "calib/choose/choice_points.h"
#include "calib/choose/layer_plan.h"
#include "calib/run/process_layer.h"
#include "calib/search/attention_error.h"
#include "calib/search/clip_grid.h"
#include "tests/calib/observe/golden_layer.h"
#include "tests/calib/search/searched_layer.h"

namespace oscar {
namespace {

using namespace searched;  // NOLINT: of searched_layer.h

TEST(AutoSearch, OutliersDoNotChangeWhatIsReached) {
  const LayerResult plain = Processed(Layer(false), Options());
  const LayerResult outliers = Processed(Layer(true), Options());
  EXPECT_GT(KlOf(outliers, "oscar_per_head"), 1.2 * KlOf(plain, "oscar_per_head"));
  // Scaled and balanced keys have the same cache in both layers, up to bf16 rounding. Keys with
  // OSCAR's rotation do not.
  int compared = 0;
  for (const CandidateScore& score : plain.automatic.scores) {
    const bool through =
        score.recipe.find("balanced") == 0 || score.recipe.find("pair_scaled") == 0;
    if (score.side != "k" || !through) continue;
    for (const CandidateScore& other : outliers.automatic.scores) {
      if (std::tie(other.recipe, other.bits, other.clip, other.fitted_scales) !=
          std::tie(score.recipe, score.bits, score.clip, score.fitted_scales))
        continue;
      EXPECT_NEAR(other.score / score.score, 1, kWorthwhile) << score.recipe;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);
  // Each choice of a recipe, an order or a clip ratio may miss the best by kWorthwhile, and
  // rounding scales to powers of two adds a difference.
  EXPECT_NEAR(KlOf(outliers, "auto") / KlOf(plain, "auto"), 1, 6 * kWorthwhile);
  EXPECT_LT(KlOf(outliers, "auto"), KlOf(outliers, "oscar_per_head"));
}

// Heads attend to single tokens, and with Hadamard, logits are off by more than exp can represent.
// The attention KL is then large but finite, so the candidate loses.
TEST(AutoSearch, HopelessCandidatesHaveScoresToo) {
  GoldenLayer layer = Layer(true, 256);
  for (at::Tensor& q : layer.q) q = q.mul(40);
  const LayerResult result = Processed(layer, Options());
  double worst = 0;
  for (const CandidateScore& score : result.automatic.scores) {
    EXPECT_TRUE(std::isfinite(score.score) && std::isfinite(score.check)) << score.recipe;
    worst = std::max(worst, score.score);
  }
  EXPECT_GT(worst, 100);
  EXPECT_NE(result.automatic.keys.kind, KeyTransformKind::kOscar);
  EXPECT_LT(KlOf(result, "auto"), 0.1 * KlOf(result, "oscar_per_head"));
}

// The recipes of a side in the order of trial, each with its 2-bit scores by clip ratio. Only
// scores in the format of the choice are included.
using Tried = std::vector<std::pair<std::string, std::map<double, double>>>;
Tried TriedRecipes(const AutoChoice& choice, const std::string& side) {
  Tried tried;
  for (const CandidateScore& score : choice.scores) {
    if (score.side != side || score.bits != 2 ||
        score.quant_group_size != choice.quant_group_size ||
        score.fitted_scales != choice.fitted_scales)
      continue;
    auto at = std::ranges::find(tried, score.recipe, [](const auto& t) { return t.first; });
    if (at == tried.end()) at = tried.insert(at, {score.recipe, {}});
    at->second[score.clip] = score.score;
  }
  return tried;
}

// Expects that the chosen recipe is Hadamard, which is tried first, or is clearly better.
void ExpectTheChoiceFollows(const AutoChoice& choice) {
  for (const auto& [side, fallback, name] :
       {std::tuple("k", choice.k_fallback, choice.keys.Name()),
        std::tuple("v", choice.v_fallback, choice.values.Name())}) {
    const Tried tried = TriedRecipes(choice, side);
    const std::string& chosen = fallback.empty() ? name : fallback;
    const auto best = [](const auto& recipe) {
      return std::ranges::min(recipe.second | std::views::values);
    };
    const auto found = std::ranges::find(tried, chosen, [](const auto& t) { return t.first; });
    ASSERT_NE(found, tried.end()) << chosen;
    if (found != tried.begin()) {
      EXPECT_LT(best(*found), (1 - kWorthwhile) * best(tried.front())) << chosen;
    }
  }
}

// A small gain is accepted if nine texts agree on it, and rejected if they do not.
TEST(AutoSearch, AGainIsWorthItBeyondItsStandardError) {
  const auto scores = [](double mean, const std::vector<double>& of_texts) {
    return HeadScores{{mean}, {mean}, of_texts};
  };
  const HeadScores before = scores(1, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_TRUE(WorthMore(scores(.95, {.9, 1, .95, .9, 1, .95, .9, 1, .95}), before));
  EXPECT_FALSE(WorthMore(scores(.95, {2, .8, .8, 2, .5, .5, 1, .9, .9}), before));
  EXPECT_FALSE(WorthMore(scores(.995, {.99, 1, .99, .99, 1, .99, .99, 1, 1}), before));
  EXPECT_TRUE(WorthMore(scores(.95, {.95}), scores(1, {1})));  // one text has no standard error
}

TEST(AutoSearch, ChoosesWhatTheConsumerLoads) {
  // Keys have a mean, and the heads need different transforms.
  GoldenLayer layer = Layer(true);
  at::Tensor scale = at::ones({2, kDim}, at::kDouble), mean = at::zeros({2, kDim}, at::kDouble);
  for (const int64_t head : {0, 1}) {
    for (const int64_t pair : {2 + head, 8 + head}) {
      for (const int64_t channel : {pair, pair + kDim / 2}) scale[head][channel] = 12;
    }
    mean[head].narrow(0, 4 * head, 8).fill_(12);
  }
  for (at::Tensor& k : layer.k) k = k.mul(scale).add(mean);
  for (at::Tensor& q : layer.q) q = q.div(scale.repeat_interleave(2, 0));
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  const AutoChoice free = Searched(observed, layer.spec, Options());
  ASSERT_TRUE(free.keys.centred);  // which some consumers cannot load
  ASSERT_TRUE(free.keys.per_head);
  for (const ConsumerRules& rules : AllConsumers()) {
    for (const bool fold : {false, true}) {
      CalibrationOptions options = Options(rules.consumer);
      options.automatic.fold = fold;
      const AutoChoice choice = Searched(observed, layer.spec, options);
      ExpectTheChoiceFollows(choice);
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

// Queries lie mostly along a few directions, so errors moved out of these have little effect.
TEST(AutoSearch, FeedsErrorsBackWhereTheWriterCan) {
  GoldenLayer layer = Layer(false);
  at::manual_seed(1);
  const at::Tensor directions = at::randn({4, kDim}, at::kDouble);
  for (at::Tensor& q : layer.q) {
    const at::Tensor along = at::randn({q.size(0), q.size(1), 4}, at::kDouble);
    q = q.mul(0.1).add(at::matmul(along, directions).mul(0.5));
  }
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  for (const auto& [consumer, allowed, tries] : {std::tuple(Consumer::kAny, false, true),
                                                 {Consumer::kSglangOct, false, false},
                                                 {Consumer::kSglangOct, true, true}}) {
    CalibrationOptions options = Options(consumer);
    options.automatic.feedback = allowed;
    const AutoChoice choice = Searched(observed, layer.spec, options);
    EXPECT_EQ(KeyRecipe::FromName(choice.keys.Name()), choice.keys);
    EXPECT_EQ(choice.k.feedback.size(), choice.keys.feedback ? 2U * kDim * kDim : 0U);
    ExpectTheChoiceFollows(choice);
    const Tried tried = TriedRecipes(choice, "k");
    const auto fed = std::ranges::find_if(
        tried, [](const auto& t) { return t.first.find(" feedback ") != std::string::npos; });
    EXPECT_EQ(fed != tried.end(), tries);
    if (!allowed) continue;
    // Feedback is tried with the best recipe. Compares it with the same recipe without feedback.
    std::string without = fed->first;
    without.erase(without.find(" feedback"), 9);
    const auto plain = std::ranges::find(tried, without, [](const auto& t) { return t.first; });
    ASSERT_NE(plain, tried.end());
    EXPECT_LT(fed->second.at(0.92), 0.95 * plain->second.at(0.92));
  }
}

TEST(AutoSearch, EveryConsumerGetsItsOwnChoice) {
  const GoldenLayer layer = Layer(true);
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  for (const Consumer consumer : {Consumer::kAny, Consumer::kSglang}) {
    CalibrationOptions options = Options(consumer);
    options.automatic.fold = consumer == Consumer::kAny;
    const std::vector<AutoOptions> others = OtherChoices(options.automatic, false);
    // Six consumers have five sets of rules, and three of these also exist with folding, which
    // makes eight choices. The headline is left out if it is one of them; `any` with folding is
    // not.
    ASSERT_EQ(others.size(), consumer == Consumer::kAny ? 8U : 7U);
    PhaseTimes times;
    const std::vector<AutoChoice> choices =
        SearchChoices(observed, layer.spec, options.search(), others, times);
    ASSERT_EQ(choices.size(), others.size() + 1);
    for (size_t i = 0; i < choices.size(); ++i) {
      CalibrationOptions own = options;
      if (i > 0) own.automatic = others[i - 1];
      const AutoChoice alone = Searched(observed, layer.spec, own);
      const std::string name = ChoiceName(own.automatic);
      EXPECT_EQ(choices[i].keys, alone.keys) << name;
      EXPECT_EQ(choices[i].values, alone.values) << name;
      EXPECT_EQ(choices[i].k, alone.k) << name;
      EXPECT_EQ(choices[i].v, alone.v) << name;
      EXPECT_EQ(choices[i].k_option().clip, alone.k_option().clip) << name;
      EXPECT_EQ(choices[i].v_option().clip, alone.v_option().clip) << name;
      EXPECT_EQ(choices[i].k_option().check, alone.k_option().check) << name;
      EXPECT_NEAR(choices[i].k_option().in_windows.at(0), alone.k_option().in_windows.at(0),
                  1e-9 * alone.k_option().in_windows.at(0))
          << name;
      EXPECT_EQ(choices[i].stability.measured, i == 0) << name;
    }
  }
}

TEST(AutoSearch, EveryBudgetGetsItsOwnChoice) {
  const GoldenLayer layer = Layer(true);
  const ObservedLayer observed = Observe(layer, kSplit, 64);
  CalibrationOptions options = Options(Consumer::kSglang);
  options.automatic.fold = false;
  options.automatic.budgets = {3, 6, 2, 2.5};
  const std::vector<AutoOptions> others = OtherChoices(options.automatic, false);
  ASSERT_EQ(others.size(), 11U);
  PhaseTimes times;
  const std::vector<AutoChoice> choices =
      SearchChoices(observed, layer.spec, options.search(), others, times);
  for (size_t i = 7; i < others.size(); ++i) {
    CalibrationOptions own = options;
    own.automatic = others[i];
    const AutoChoice alone = Searched(observed, layer.spec, own), &choice = choices[i + 1];
    const std::string name = ChoiceName(others[i]);
    EXPECT_EQ(name, (std::vector<std::string>{"any@3", "any@6", "any@2", "any@2.5"})[i - 7]);
    EXPECT_EQ(choice.keys, alone.keys) << name;
    EXPECT_EQ(choice.k, alone.k) << name;
    EXPECT_EQ(choice.v, alone.v) << name;
    EXPECT_EQ(choice.fitted_scales, alone.fitted_scales) << name;
    ASSERT_EQ(choice.k_options.size(), alone.k_options.size()) << name;
    for (size_t option = 0; option < alone.k_options.size(); ++option) {
      EXPECT_EQ(choice.k_options[option].bits, alone.k_options[option].bits) << name;
      EXPECT_EQ(choice.k_options[option].clip, alone.k_options[option].clip) << name;
      EXPECT_EQ(choice.k_options[option].score, alone.k_options[option].score) << name;
    }
  }
}

TEST(AutoSearch, AConsumerFindsItsChoice) {
  const AutoOptions headline{.enabled = true, .consumer = Consumer::kSglang, .fold = false};
  EXPECT_EQ(ChoiceFor(headline, false, Consumer::kSglang, false), "auto");
  EXPECT_EQ(ChoiceFor(headline, false, Consumer::kVllm, false), "auto");  // same rules as sglang
  EXPECT_EQ(ChoiceFor(headline, false, Consumer::kVllm, true), "sglang+fold");
  EXPECT_EQ(ChoiceFor(headline, false, Consumer::kSglangOct, false), "sglang-oct");
  EXPECT_EQ(ChoiceFor(headline, true, Consumer::kSglangOct, true), "sglang-oct");
  EXPECT_EQ(OtherChoices({.enabled = true}, true).size(), 1U);  // sglang-oct, besides any
}

// Returns values that Hadamard maps to four evenly spaced levels, with a single largest value per
// row. They have no error unless that value is clipped, so unlike the keys, they need the highest
// ratio.
at::Tensor OfFourLevels(const at::Tensor& v, const GoldenLayer& layer) {
  const CacheSide hadamard =
      FitValues(Observe(layer, kSplit, 64).fit, {{.composition = Composition::kHPbr}}).at(0);
  at::Tensor levels = at::randint(0, 3, v.sizes(), at::kDouble).mul(2).sub(1);
  levels.scatter_(2, at::randint(0, v.size(2), {v.size(0), v.size(1), 1}, at::kLong), 5);
  const at::Tensor rotation =
      at::tensor(hadamard.rotation, at::kDouble).view({v.size(2), v.size(2)});
  return levels.matmul(rotation.t());
}

TEST(AutoSearch, TheArmIsMeasuredWhereTheConsumerTakesOneRatio) {
  GoldenLayer layer = Layer(true);
  for (at::Tensor& v : layer.v) v = OfFourLevels(v, layer);
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
    for (size_t i = 0; i < ratios.size(); ++i) {
      EXPECT_NEAR(
          keys.windows_curve.at(i).at(0) / ((keys.curve.at(i) + keys.check_curve.at(i)) / 2), 1,
          1e-9);
    }
    const SideOption& values = result.automatic.v_option();
    const auto own = std::ranges::min_element(values.curve) - values.curve.begin();
    ASSERT_NE(ratios.at(static_cast<size_t>(own)),
              keys.clip[0]);  // otherwise one ratio would suit both
    EXPECT_EQ(values.score == values.curve.at(static_cast<size_t>(own)), !one_ratio);
    const auto at = std::ranges::find(ratios, values.clip[0]) - ratios.begin();
    EXPECT_EQ(result.automatic.v_check, values.check_curve.at(static_cast<size_t>(at)));
    EXPECT_EQ(keys.score, *std::ranges::min_element(keys.curve));
    EXPECT_TRUE(!one_ratio || result.automatic.k_option().clip == result.automatic.v_option().clip);
    // Another layer makes the plan choose ratios that are not the best for this layer.
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
    // Measures the same arm alone, with the search's fit, which does not use the held-out rows.
    const ObservedLayer observed = Observe(layer, kSplit, 64);
    AutoChoice judged = Searched(observed, layer.spec, options);
    judged.k_option().SetRatio(0.94);
    judged.v_option().SetRatio(0.94);
    const ArmResult alone =
        MeasureAttentionError(observed, layer.spec,
                              {{.name = "auto", .choice = &judged, .point = to}}, options.windows(),
                              0, at::kFloat)
            .at(0);
    EXPECT_EQ(measured->arm.kl_mean, alone.kl_mean);
    EXPECT_EQ(measured->arm.output_rel_error, alone.output_rel_error);
    EXPECT_NE(measured->arm.kl_mean, result.arms.back().kl_mean);
    EXPECT_NE(measured->arm.output_rel_error, result.arms.back().output_rel_error);
    // The choice also has the scores of that ratio.
    EXPECT_EQ(choices[0].k_option().score, result.automatic.k_option().curve.at(3));
    EXPECT_EQ(choices[0].k_option().check, result.automatic.k_option().check_curve.at(3));
    EXPECT_EQ(choices[0].k_option().in_windows, result.automatic.k_option().windows_curve.at(3));
  }
}

TEST(AutoSearch, NothingIsFoldedWithoutAKnownRope) {
  GoldenLayer layer = Layer(true);
  layer.spec.attention.rope.rotary_dim = 0;  // unknown, as in some dumps
  const AutoChoice choice =
      Searched(Observe(layer, kSplit, 64), layer.spec, Options(Consumer::kSglang));
  EXPECT_EQ(choice.keys.kind, KeyTransformKind::kOscar);
}

TEST(AutoSearch, IsDeterministicAndKeepsEveryScore) {
  const GoldenLayer layer = Layer(true);
  const AutoChoice a = Searched(Observe(layer, kSplit, 64), layer.spec, Options());
  const AutoChoice b = Searched(Observe(layer, kSplit, 64), layer.spec, Options());
  EXPECT_EQ(ChoiceToJson(a).dump(), ChoiceToJson(b).dump());
  std::set<std::string> recipes;
  double best = 1e9;
  for (const CandidateScore& score : a.scores) {
    if (score.side != "k") continue;
    recipes.insert(score.recipe);
    EXPECT_GT(score.score, 0);
    EXPECT_NE(score.score, score.check);  // on different rows
    if (score.bits == 2 && score.quant_group_size == 0) best = std::min(best, score.score);
  }
  EXPECT_GE(recipes.size(), 12u);
  ExpectTheChoiceFollows(a);
  // Only Hadamard, the best recipe and the chosen one are tried at more than one clip ratio.
  const Tried tried = TriedRecipes(a, "k");
  const auto clipped =
      std::ranges::count_if(tried, [](const auto& recipe) { return recipe.second.size() > 1; });
  EXPECT_LE(clipped, 3);
  EXPECT_GT(tried.at(0).second.size(), 1U);
  const auto chosen =
      std::ranges::find(tried, a.keys.Name(), [](const auto& recipe) { return recipe.first; });
  EXPECT_EQ(chosen->second.size(), GridOf(2).ratios.size());
  EXPECT_LE(a.k_options.at(0).score, 1.1 * best);  // a simpler recipe may win
}

// A recipe that needs more of a consumer is not chosen if it gains nothing.
TEST(AutoSearch, KeysWithoutAMeanAreNotCentred) {
  GoldenLayer layer = Layer(false);
  for (at::Tensor& k : layer.k) k = k.sub(k.mean(0));
  const AutoChoice choice = Searched(Observe(layer, kSplit, 64), layer.spec, Options());
  EXPECT_FALSE(choice.keys.centred) << choice.keys.Name();
  ExpectTheChoiceFollows(choice);
}

TEST(AutoSearch, MoreBitsAndLargerWindowsAreBetter) {
  const AutoChoice choice =
      Searched(Observe(Layer(false), kSplit, 64), Layer(false).spec, Options());
  ASSERT_EQ(choice.k_options.size(), 3u);
  EXPECT_LT(choice.k_options[1].score, 0.6 * choice.k_options[0].score);
  EXPECT_LT(choice.k_options[2].score, 0.6 * choice.k_options[1].score);
  EXPECT_LT(choice.v_options[1].score, choice.v_options[0].score);
  for (const SideOption& option : choice.k_options)  // as many rows choose as judge
    EXPECT_NEAR(option.in_windows.at(0) / ((option.score + option.check) / 2), 1, 1e-9);
  ASSERT_EQ(choice.windows.at(0).windows.recent, 16);
  ASSERT_EQ(choice.windows.at(1).windows.recent, 0);
  EXPECT_GT(choice.k_options[0].in_windows.at(1), choice.k_options[0].in_windows.at(0));
}

// First, both halves have the same kind of text. Then one half lacks the outlier channels of the
// other half and of the held-out text, so a fit to it has a cost.
TEST(AutoSearch, HalvesThatAskForOtherFitsAreUnstable) {
  const HeldOutSplit split = {HeldOutKind::kDocuments, {1800, 1800, 1800, 0}, 320};
  GoldenLayer layer = RandomLayer(4, 2, kDim, 16, {1800, 1800, 1800, 320}, {}, 7);
  layer.spec.attention.rope.rotary_dim = kDim;
  const Stability same = Searched(Observe(layer, split, 64), layer.spec, Options()).stability;
  EXPECT_TRUE(same.measured);
  EXPECT_FALSE(same.few_tokens);
  at::Tensor scale = at::ones({kDim}, at::kDouble);
  for (const int64_t pair : {1, 6, 11}) {
    for (const int64_t channel : {pair, pair + kDim / 2}) scale[channel] = 16;
  }
  for (const size_t i : {0, 1, 3}) {  // the other half is the third text
    layer.k[i] = layer.k[i].mul(scale);
    layer.q[i] = layer.q[i].div(scale);
  }
  const Stability other = Searched(Observe(layer, split, 64), layer.spec, Options()).stability;
  EXPECT_GT(other.k_cost, kStableCost);
  EXPECT_GT(other.k_cost, 1.5 * same.k_cost);
  EXPECT_TRUE(other.unstable);
  EXPECT_FALSE(other.few_tokens);
  // One text cannot be split into two halves.
  const GoldenLayer few = Layer(false);
  HeldOutSplit some = kSplit;
  some.fit_rows = {320, 0, 0, 0};
  some.held_out_tokens = 960;
  EXPECT_TRUE(Searched(Observe(few, some, 64), few.spec, Options()).stability.few_tokens);
}

TEST(AutoSearch, ShortTextsAreScoredWithEverythingQuantized) {
  const GoldenLayer layer = Layer(false);
  CalibrationOptions options = Options();
  options.recent_tokens = 4096;
  const AutoChoice choice = Searched(Observe(layer, kSplit, 64), layer.spec, options);
  EXPECT_TRUE(choice.rows_in_windows);
  EXPECT_GT(choice.k_options.at(0).score, 0);
}

}  // namespace
}  // namespace oscar
