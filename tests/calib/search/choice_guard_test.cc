// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the guard of the automatic choice, which rejects a recipe that wins on the choosing rows
// but loses to Hadamard + clip on the judging rows. Sampled rows are at tokens 5 j + 4; rows with
// even j choose, the others judge.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "calib/search/choice_search.h"
#include "calib/search/clip_grid.h"
#include "tests/calib/observe/golden_layer.h"
#include "tests/calib/search/searched_layer.h"

namespace oscar {
namespace {

using namespace searched;  // NOLINT: of searched_layer.h

constexpr int64_t kValueDim = 16, kTokens = 320;

AutoChoice Chosen(const GoldenLayer& layer, Consumer consumer = Consumer::kAny) {
  CalibrationOptions options = Options();
  options.automatic.consumer = consumer;
  return Searched(Observe(layer, kSplit, 64), layer.spec, options);
}

// Returns the judging rows of the held-out text.
at::Tensor JudgingRows() { return at::arange(9, kTokens, 10); }

// Returns a curve with the ratios .90 and .94 and the scores of two heads at each, on choosing and
// on judging rows.
Curve TwoRatios(const HeadScores& at_90, const HeadScores& at_94) {
  Curve curve;
  Insert(curve, 0.94, at_94);
  Insert(curve, 0.90, at_90);
  return curve;
}

// Head 0 is better at .94 but gets that ratio only if the judging rows agree. Head 1 is better at
// .90.
TEST(AutoGuard, AHeadsOwnClipRatioConvincesBothSetsOfRows) {
  const auto clip = [](double judged, bool of_head = true) {
    return OptionOf(2, TwoRatios({{1, 1}, {1, 1}}, {{0.9, 1.2}, {judged, 1.2}}), of_head);
  };
  const SideOption own = clip(0.95);
  EXPECT_EQ(own.clip, (std::vector<double>{0.94, 0.90}));
  EXPECT_EQ(own.head_score, (std::vector<double>{0.9, 1}));
  EXPECT_EQ(own.head_check, (std::vector<double>{0.95, 1}));
  EXPECT_DOUBLE_EQ(own.score, 0.95);
  EXPECT_DOUBLE_EQ(own.check, 0.975);
  EXPECT_EQ(clip(1.01).clip, (std::vector<double>{0.90, 0.90}));
  EXPECT_EQ(clip(1.01).score, 1);
  EXPECT_EQ(clip(0.95, false).clip, (std::vector<double>{0.90}));
  // Head 0 gets its own ratio even if head 1 does not.
  const SideOption half =
      OptionOf(2, TwoRatios({{1, 1.1}, {1, 1.1}}, {{0.9, 1.2}, {0.95, 1.0}}), true);
  EXPECT_EQ(half.clip, (std::vector<double>{0.94, 0.90}));
  // A gain of less than kWorthwhile is ignored.
  const SideOption little =
      OptionOf(2, TwoRatios({{1, 1}, {1, 1}}, {{0.995, 1.2}, {0.9, 1.2}}), true);
  EXPECT_EQ(little.clip, (std::vector<double>{0.90, 0.90}));
}

// Queries are nearly zero in a quarter of the RoPE pairs, so keys may be stored coarsely there.
// Later, judging rows read only those pairs, so the recipe loses.
TEST(AutoGuard, KeysThatLoseOnJudgingRowsAreHadamards) {
  GoldenLayer layer = Layer(false);
  at::Tensor seen = at::ones({kDim}, at::kDouble);
  for (int64_t pair = 12; pair < 16; ++pair)
    for (const int64_t channel : {pair, pair + kDim / 2}) seen[channel] = 0.01;
  const at::Tensor judging = layer.q[3].index_select(0, JudgingRows()).mul(seen.lt(0.5)).mul(3);
  for (at::Tensor& q : layer.q) q = q.mul(seen);
  const AutoChoice free = Chosen(layer);
  EXPECT_EQ(free.k_fallback, "");
  EXPECT_LT(free.k_check, free.k_hadamard);
  EXPECT_NE(free.keys, (KeyRecipe{.composition = Composition::kHPbr}));

  layer.q[3].index_copy_(0, JudgingRows(), judging);
  const AutoChoice guarded = Chosen(layer);
  EXPECT_EQ(guarded.k_fallback, free.keys.Name());
  EXPECT_GT(guarded.k_check, guarded.k_hadamard);
  EXPECT_EQ(guarded.keys, (KeyRecipe{.composition = Composition::kHPbr}));
  EXPECT_TRUE(guarded.k.query_rotation.empty());
  const SideOption& two_bits = guarded.k_options.at(0);
  EXPECT_EQ(two_bits.ratios, GridOf(2).ratios);  // the fallback tried every ratio
  EXPECT_EQ(guarded.v_fallback, "");
}

// Choosing rows read tokens like those of the fit. Hadamard turns each of them into three outlier
// channels, more than any clip ratio removes. Later, judging rows read tokens to which the fitted
// rotation does the same. (Scales fitted to codes would store both kinds well.)
TEST(AutoGuard, ValuesThatLoseOnJudgingRowsAreHadamards) {
  GoldenLayer layer = Layer(false);
  const auto loud = [&](const at::Tensor& values, const std::vector<double>& rotation) {
    const at::Tensor r = at::tensor(rotation, at::kDouble).view({-1, kValueDim, kValueDim});
    at::Tensor rows = values.mul(0.1);
    for (const int64_t channel : {1, 5, 10}) {
      const at::Tensor sign = at::randn({values.size(0), 2, 1}, at::kDouble).sign();
      rows = rows.add(r.select(2, channel).mul(5).mul(sign));  // R maps it to one channel
    }
    return rows;
  };
  const CacheSide hadamard =
      FitValues(Observe(layer, kSplit, 64).fit, {{.composition = Composition::kHPbr}}).at(0);
  for (at::Tensor& v : layer.v) v = loud(v, hadamard.rotation);
  // Every other token is read only by judging rows.
  at::Tensor& q = layer.q[3];
  at::Tensor& k = layer.k[3];
  q.select(2, 0).fill_(6);
  q.select(2, 0).index_fill_(0, JudgingRows(), -6);
  k.select(2, 0).fill_(6);
  k.slice(0, 0, kTokens, 2).select(2, 0).fill_(-6);
  const AutoChoice free = Chosen(layer, Consumer::kOnnx);
  EXPECT_EQ(free.v_fallback, "");
  EXPECT_LT(free.v_check, 0.9 * free.v_hadamard);

  at::Tensor others = layer.v[3].slice(0, 0, kTokens, 2);
  others.copy_(loud(others, free.v.rotation));
  const AutoChoice guarded = Chosen(layer, Consumer::kOnnx);
  EXPECT_EQ(guarded.v_fallback, free.values.Name());
  EXPECT_GT(guarded.v_check, guarded.v_hadamard);
  EXPECT_EQ(guarded.values, (ValueRecipe{.composition = Composition::kHPbr}));
  EXPECT_EQ(guarded.v.rotation, hadamard.rotation);
  EXPECT_EQ(guarded.v_options.at(0).ratios, GridOf(2).ratios);
}

}  // namespace
}  // namespace oscar
