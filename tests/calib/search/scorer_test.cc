// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares scores with the errors of the measured arm, and batched scores with those computed one
// at a time.
#include "calib/search/scorer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/row_comparison.h"
#include "calib/cache/side_tensors.h"
#include "calib/search/attention_error.h"
#include "calib/search/choice_search.h"
#include "linalg/base/error.h"
#include "tests/calib/observe/golden_layer.h"
#include "tests/calib/search/searched_layer.h"

namespace oscar {
namespace {

constexpr int64_t kDim = 32;

GoldenLayer Layer(const std::vector<int64_t>& lengths) {
  GoldenLayer layer = RandomLayer(4, 2, kDim, 16, lengths, {}, 7);
  layer.spec.attention.rope.rotary_dim = kDim;
  return layer;
}

// The scorer computes the same errors as the arm that is measured in the end.
TEST(AutoScorer, AgreesWithTheMeasuredArm) {
  const HeldOutSplit split = {HeldOutKind::kDocuments, {320, 320, 320, 0}, 320};
  const GoldenLayer layer = Layer({320, 320, 320, 320});
  const ObservedLayer observed = Observe(layer, split, 64);
  const CalibrationOptions options = searched::Options();
  AutoChoice choice = searched::Searched(observed, layer.spec, options);
  const std::vector<ArmResult> arms = MeasureAttentionError(
      observed, layer.spec, {{.name = "auto", .choice = &choice}}, options.windows());
  const AutoScorer scorer(observed, layer.spec, {{4, 16}}, 0, 0);
  const CacheSide* const side[] = {&choice.k};
  const AutoScorer::Trial trial{0, choice.k_option().clip};
  const double kl =
      Mean(scorer.ScoreWindows(scorer.RotateKeys(side), {&trial, 1}, choice.Format(2, true))
               .at(0)
               .at(0));
  // The scorer leaves out rows inside the windows, which have almost no error.
  EXPECT_NEAR(kl * static_cast<double>(scorer.rows()),
              arms.at(0).kl_mean * static_cast<double>(arms.at(0).rows), 0.01 * kl * 64);
  // This scorer covers all rows, in each of several windows.
  const AutoScorer all(observed, layer.spec, {{0, 0}, {4, 16}, {128, 1024}}, 0, 0);
  ASSERT_EQ(all.rows(), arms.at(0).rows);
  std::vector<double> in_windows;
  const AutoScorer::WindowScores of_heads =
      all.ScoreWindows(all.RotateKeys(side), {&trial, 1}, choice.Format(2, true)).at(0);
  for (const std::vector<double>& heads : of_heads) in_windows.push_back(Mean(heads));
  EXPECT_NEAR(in_windows.at(0) / arms.at(0).kl_mean_no_windows, 1, 1e-4);
  EXPECT_NEAR(in_windows.at(1) / arms.at(0).kl_mean, 1, 1e-4);
  EXPECT_LT(in_windows.at(2), 0.01 * in_windows.at(1));  // the windows are longer than the text
  // Errors in keys alone change the output less than errors in both sides, and less still with
  // larger windows.
  const auto error = [&](const AutoScorer& of) {
    return Mean(of.KeyOutputErrors(of.RotateKeys(side), trial, choice.Format(2, true)));
  };
  EXPECT_LT(error(all), arms.at(0).output_rel_error_no_windows);
  EXPECT_GT(error(all), 0.3 * arms.at(0).output_rel_error_no_windows);
  const AutoScorer half(observed, layer.spec, {{4, 150}}, 0, 0);  // about half of the text is exact
  EXPECT_LT(error(half), 0.85 * error(all));
  const CacheSide* const values[] = {&choice.v};
  const auto value_error = [&](const AutoScorer& of) {
    return Mean(of.ScoreValues(values, {&trial, 1}, choice.Format(2, false)).at(0).score);
  };
  EXPECT_LT(value_error(half), 0.85 * value_error(all));
}

TEST(AutoScorer, RowsBehindItsTokensReadTheFirstAndTheLast) {
  constexpr int64_t kLength = AutoScorer::kTokens + 700, kSinks = 4;
  const GoldenLayer layer = Layer({kLength});
  const ObservedLayer observed = Observe(layer, {HeldOutKind::kTailRows, {kLength - 200}, 200}, 64);
  const int64_t begin = observed.queries.at(0).rows.max().item<int64_t>() + 1 - AutoScorer::kTokens;
  ASSERT_GT(begin, 0);
  ObservedLayer cut = observed;
  cut.queries.at(0).rows = observed.queries.at(0).rows.sub(begin);
  const auto without_middle = [&](const at::Tensor& of_tokens) {
    return at::cat({of_tokens.slice(0, 0, kSinks), of_tokens.slice(0, begin + kSinks)});
  };
  cut.keys.at(0) = without_middle(observed.keys.at(0));
  cut.values.at(0) = without_middle(observed.values.at(0));
  const AutoScorer whole(observed, layer.spec, {{kSinks, 16}}, 0, 0),
      expected(cut, layer.spec, {{kSinks, 16}}, 0, 0);
  EXPECT_EQ(whole.rows(), expected.rows());
  EXPECT_FALSE(whole.rows_in_windows());
  const GoldenLayer other = searched::Layer(false);
  const AutoChoice choice =
      searched::Searched(Observe(other, searched::kSplit, 64), other.spec, searched::Options());
  const CacheSide* const side[] = {&choice.k};
  const AutoScorer::Trial trial{0, choice.k_option().clip};
  const auto scores = [&](const AutoScorer& of) {
    return of.ScoreKeys(of.RotateKeys(side), {&trial, 1}, choice.Format(2, true)).at(0).score;
  };
  EXPECT_EQ(scores(whole), scores(expected));
  EXPECT_GT(Mean(scores(whole)), 0);
}

TEST(AutoScorer, NeedsARowThatChoosesAndOneThatJudges) {
  const GoldenLayer layer = Layer({64, 64});
  const ObservedLayer observed = Observe(layer, {HeldOutKind::kDocuments, {64, 0}, 64}, 1);
  EXPECT_THROW(AutoScorer(observed, layer.spec, {{4, 16}}, 0, 0), InputError);
}

// Returns the mean of |P^ V^ - P V| / |P V| over the held-out sequence's rows beyond the windows.
double MeanRelativeError(const ObservedLayer& observed, const LayerSpec& spec,
                         const AutoChoice& choice, const CacheWindows& windows) {
  const HeldOutQueries& rows = observed.queries.at(0);
  const auto sequence = static_cast<size_t>(rows.sequence);
  const at::Tensor &keys = observed.keys[sequence], &values = observed.values[sequence];
  RowComparison comparison(spec.attention, keys, values, at::kDouble, RowDetail::kKlAndOutput);
  comparison.SetPositionKeys(observed.k_pe[sequence]);
  comparison.SetOutputMap(observed.w_uv);
  comparison.SetRows({rows.rows, rows.queries, rows.q_pe});
  const SidesOnDevice of_keys = OneSide(choice.k, at::kCPU),
                      of_values = OneSide(choice.v, at::kCPU);
  const at::Tensor k = KeysOfOne(of_keys, keys), v = ValuesOfOne(of_values, values);
  const auto quantized = [&](const at::Tensor& x, const SideOption& option) {
    return QuantizedRows(x, choice.Quantizer(option, /*of_keys=*/true));
  };
  const auto tokens_first = [](const at::Tensor& heads) { return heads.permute({1, 0, 2}); };
  const RowComparison::Prepared stored =
      comparison.Prepare({tokens_first(quantized(k, choice.k_option())),
                          tokens_first(ValuesBackOfOne(of_values, quantized(v, choice.v_option()))),
                          tokens_first(k), tokens_first(ValuesBackOfOne(of_values, v))});
  const ExactSides exact = {ExactInWindows(windows), ExactInWindows(windows)};
  const RowErrors errors =
      comparison
          .Compare(stored, QueriesOfOne(of_keys, rows.queries, spec.attention.num_kv_heads),
                   {&exact, 1})
          .at(0);
  const at::Tensor beyond = BeyondWindows(rows.rows, windows, spec.attention).nonzero().squeeze(1);
  const at::Tensor of_rows = errors.output_error_sq.div(comparison.reference().output_sq).sqrt();
  return of_rows.index_select(-1, beyond).mean().item<double>();
}

TEST(AutoScorer, LatentsAgreeWithTheMeasuredArm) {
  const GoldenLatents layer = RandomLatents(4, 32, {160, 160, 160, 160}, 11);
  const ObservedLayer observed =
      Observe(layer, {HeldOutKind::kDocuments, {160, 160, 160, 0}, 160}, 64);
  const CalibrationOptions options = searched::Options();
  const AutoChoice choice = searched::Searched(observed, layer.spec, options);
  ASSERT_TRUE(choice.latent());
  const ArmResult arm =
      MeasureAttentionError(observed, layer.spec, {{.name = "auto", .choice = &choice}},
                            options.windows())
          .at(0);
  const CacheSide* const side[] = {&choice.k};
  const AutoScorer::Trial trial{0, choice.k_option().clip};
  for (const bool in_windows : {false, true}) {
    const CacheWindows windows = in_windows ? CacheWindows{4, 16} : CacheWindows{0, 0};
    const AutoScorer scorer(observed, layer.spec, {windows}, 0, 0);
    const AutoScorer::LatentScores scores =
        scorer.ScoreLatents(scorer.RotateKeys(side), {&trial, 1}, choice.Format(2, true)).at(0);
    const double kl = (Mean(scores.kl.score) + Mean(scores.kl.check)) / 2;
    const double output = (Mean(scores.output.score) + Mean(scores.output.check)) / 2;
    // The scorer leaves out rows inside the windows, which have almost no error.
    const double share = static_cast<double>(scorer.rows()) / static_cast<double>(arm.rows);
    EXPECT_NEAR(kl * share / (in_windows ? arm.kl_mean : arm.kl_mean_no_windows), 1, 0.01);
    EXPECT_NEAR(output / MeanRelativeError(observed, layer.spec, choice, windows), 1, 0.01);
  }
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5 * b[i]);
}

// Texts of different lengths are padded to one shape, and all kinds of sides share one product. The
// scores must equal those of one text and one side at a time.
TEST(AutoScorer, WhatIsScoredTogetherScoresAsAlone) {
  const GoldenLayer layer = Layer({320, 290, 200, 320});
  const HeldOutSplit split = {HeldOutKind::kTailRows, {320, 265, 100, 0}, 445};
  const ObservedLayer observed = Observe(layer, split, 64);
  const std::vector<CacheSide> keys = FitKeys(
      observed.fit, {{.composition = Composition::kHPbr},
                     {.kind = KeyTransformKind::kPairScaled, .per_head = true, .centred = true},
                     {.kind = KeyTransformKind::kBalanced, .epsilon = 0.1, .per_head = true}});
  const std::vector<CacheSide> values =
      FitValues(observed.fit, {{.composition = Composition::kHPbr}, {.per_head = true}});
  const std::vector<const CacheSide*> k = {&keys[0], &keys[1], &keys[2]},
                                      v = {&values[0], &values[1]};
  const std::vector<AutoScorer::Trial> k_trials = {
      {0, {0.92}}, {0, {0.9}}, {1, {0.9}}, {2, {0.96, 0.88}}};
  const std::vector<AutoScorer::Trial> v_trials = {{0, {0.92}}, {1, {0.9, 0.94}}, {1, {0.9}}};
  const std::vector<AutoScorer::Trial> of_one = {{0, {0.9}}, {0, {0.96}}};
  const std::vector<CacheWindows> windows = {{4, 16}, {0, 0}, {8, 64}};
  const AutoScorer alone(observed, layer.spec, windows, 100, 0);
  ASSERT_EQ(alone.rows(), 25 + 64 + 60);  // in the last text, only rows beyond the windows
  // Scores everything at once, then two texts with one or two trials at a time.
  for (const int64_t values_at_once : {int64_t{1} << 30, int64_t{2 * 4 * 64 * 320}}) {
    const AutoScorer together(observed, layer.spec, windows, 100, values_at_once);
    const auto compare = [&](const std::vector<HeadScores>& a, const std::vector<HeadScores>& b) {
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) {
        ExpectNear(a[i].score, b[i].score);
        ExpectNear(a[i].check, b[i].check);
      }
    };
    for (const int bits : {2, 3}) {
      compare(together.ScoreKeys(k, k_trials, {bits, 0}), alone.ScoreKeys(k, k_trials, {bits, 0}));
      compare(together.ScoreValues(v, v_trials, {bits, 8}),
              alone.ScoreValues(v, v_trials, {bits, 8}));
    }
    const std::span<const CacheSide* const> last = std::span(k).last(1);
    const AutoScorer::Rotated a = together.RotateKeys(last), b = alone.RotateKeys(last);
    ExpectNear(together.KeyOutputErrors(a, of_one[0], {2, 0}),
               alone.KeyOutputErrors(b, of_one[0], {2, 0}));
    const auto in_windows = together.ScoreWindows(a, of_one, {2, 0}),
               expected = alone.ScoreWindows(b, of_one, {2, 0});
    ASSERT_EQ(expected.size(), 2u);
    for (size_t i = 0; i < expected.size(); ++i) {
      for (size_t w = 0; w < expected[i].size(); ++w)
        ExpectNear(in_windows[i].at(w), expected[i][w]);
    }
    // A window score is the mean over 75 choosing rows (score) and 74 judging rows (check).
    const HeadScores scores = alone.ScoreKeys(b, of_one, {2, 0})[0];
    for (size_t head = 0; head < scores.score.size(); ++head) {
      EXPECT_NEAR(expected[0][0].at(head),
                  (75 * scores.score[head] + 74 * scores.check[head]) / 149,
                  1e-9 * expected[0][0][head]);
    }
  }
}

}  // namespace
}  // namespace oscar
