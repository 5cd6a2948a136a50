// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/rotation_refinement.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "calib/cache/affine_tensor.h"
#include "calib/search/refinement_loss.h"
#include "linalg/base/error.h"
#include "tests/reference/scalar_attention_kl.h"

namespace oscar {
namespace {

constexpr int64_t kHeads = 2, kDim = 16, kTokens = 48;

RefinementSequence Sequence(uint64_t seed) {
  at::manual_seed(7);
  const at::Tensor scale = at::exp(at::randn({kHeads, kDim}, at::kFloat));
  const at::Tensor mean = at::randn({kHeads, kDim}, at::kFloat).mul(3);
  at::manual_seed(seed);
  const at::Tensor q = at::randn({kTokens, 2 * kHeads, kDim}, at::kFloat),
                   k = at::randn({kTokens, kHeads, kDim}, at::kFloat),
                   v = at::randn({kTokens, kHeads, kDim}, at::kFloat);
  return {q, k.mul(scale).add(mean), v.mul(scale)};
}

RefinementProblem Problem() {
  RefinementProblem problem;
  problem.attention.num_q_heads = 2 * kHeads;
  problem.attention.num_kv_heads = kHeads;
  problem.attention.head_dim = problem.attention.v_head_dim = kDim;
  problem.attention.scale = 1 / std::sqrt(double{kDim});
  problem.rows = SplitRows({Sequence(1), Sequence(2), Sequence(3)});
  return problem;
}

RefinementOptions Options(int steps) {
  RefinementOptions options;
  options.steps = steps;
  options.queries = 24;
  options.windows = {2, 8};
  return options;
}

HeadTransforms Identity() { return {at::eye(kDim, at::kFloat).unsqueeze(0), {}}; }

at::Tensor StraightThrough(const at::Tensor& rows, const AffineQuantizer& quantizer) {
  return QuantizedRows(rows, quantizer, {}, /*straight_through=*/true);
}

bool EveryHeadIsBetter(const RefinedSide& side) {
  return std::ranges::equal(side.loss_after, side.loss_before, std::less());
}

double Largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

void ExpectOrthogonal(const at::Tensor& r) {
  const at::Tensor wide = r.to(at::kDouble);
  EXPECT_LT(Largest(at::matmul(wide.transpose(1, 2), wide) - at::eye(r.size(-1), at::kDouble)),
            1e-6);
}

void ExpectStart(const RefinedSide& side) {
  EXPECT_TRUE(side.transforms.transform.equal(Identity().transform.expand({kHeads, -1, -1})));
  EXPECT_EQ(side.loss_after, side.loss_before);
}

TEST(StraightThrough, ValuesAreTheQuantizers) {
  at::manual_seed(1);
  const at::Tensor rows = at::randn({50, 64}, at::kDouble);
  for (const int64_t group : {0, 16}) {
    for (const double ratio : {0.0, 0.9}) {
      for (const bool clip_groups : {false, true}) {
        const AffineQuantizer quantizer{{3}, {ratio}, group, clip_groups};
        const int64_t size = group == 0 ? 64 : group;
        const at::Tensor x = clip_groups ? rows.reshape({-1, size}) : rows;
        const at::Tensor thresholds = ClipThresholds(SortedMagnitudes(x), ratio);
        const at::Tensor expected = AffineRoundTrip(x, thresholds, {3, size}).view_as(rows);
        EXPECT_TRUE(QuantizedRows(rows, quantizer).equal(expected)) << group << ratio;
        EXPECT_LT(Largest(StraightThrough(rows, quantizer) - expected), 1e-12)
            << group << ratio << clip_groups;
      }
    }
  }
  EXPECT_TRUE(StraightThrough(rows, {.bits = {0}, .clip = {0.5}}).equal(rows));
}

// x^ = x + (q - t) s with q - t constant. Unclipped values have gradient 1, and the ends of the
// range also change s.
TEST(StraightThrough, GradientPassesRoundingAndReachesTheScale) {
  const at::Tensor x = at::tensor({0.0, 1.25, 2.0, 3.0}, at::kDouble).requires_grad_(true);
  StraightThrough(x, {}).sum().backward();
  // The residuals q - t are 0, -0.25, 0 and 0; s = (x3 - x0) / 3.
  const std::vector<double> expected = {1 + 0.25 / 3, 1, 1, 1 - 0.25 / 3};
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(x.grad()[i].item<double>(), expected[static_cast<size_t>(i)], 1e-12);
  const at::Tensor clipped = at::tensor({-1.0, 0.2, 0.5, 9.0}, at::kDouble).requires_grad_(true);
  StraightThrough(clipped, {.clip = {0.5}}).sum().backward();
  EXPECT_EQ(clipped.grad()[3].item<double>(), 0);
  // This range begins at zero, so its lower end does not depend on a value.
  const at::Tensor positive = at::tensor({1.0, 1.25, 2.0, 3.0}, at::kDouble).requires_grad_(true);
  AffineQuantizer with_zero;
  with_zero.metadata = MetadataType::kByte;
  StraightThrough(positive, with_zero).sum().backward();
  EXPECT_EQ(positive.grad()[0].item<double>(), 1);
  EXPECT_NE(positive.grad()[3].item<double>(), 1);
}

TEST(SplitRows, SetsAsideAQuarterOrHalfOfOne) {
  EXPECT_EQ(SplitRows({Sequence(1), Sequence(2)}).held_out.size(), 1u);
  const std::vector<RefinementSequence> eight(8, Sequence(1));
  EXPECT_EQ(SplitRows(eight).fit.size(), 6u);
  EXPECT_EQ(SplitRows(eight).held_out.size(), 2u);
  const RefinementRows halves = SplitRows({Sequence(4)});
  EXPECT_TRUE(halves.fit[0].k.equal(Sequence(4).k.slice(0, 0, kTokens / 2)));
  EXPECT_TRUE(halves.held_out[0].q.equal(Sequence(4).q.slice(0, kTokens / 2)));
  EXPECT_THROW(SplitRows({}), InputError);
}

TEST(RefinementLoss, IsTheReferencesKlAndOutputError) {
  RefinementProblem problem = Problem();
  problem.attention.window = 30;
  RefinementOptions options = Options(0);
  options.queries = kTokens;
  options.shift_weight = 0;
  const RefinementLoss losses(problem, options, at::kCPU);
  const RefinementSequence rows = Sequence(9);
  const HeadTransforms start = {Identity().transform.expand({kHeads, -1, -1}), {}};
  const at::Tensor kl = losses.Keys(losses.PrepareKeys(rows), start);
  options.k.bits = {0};
  const RefinementLoss exact_keys(problem, options, at::kCPU);
  const at::Tensor output = exact_keys.Values(exact_keys.PrepareValues(rows, start), start);

  const auto values = [](const at::Tensor& x, int64_t head) {
    const at::Tensor one = x.select(1, head).to(at::kDouble).contiguous();
    return std::vector<double>(one.const_data_ptr<double>(),
                               one.const_data_ptr<double>() + one.numel());
  };
  const auto stored = [](const at::Tensor& x, double ratio) {
    return StraightThrough(x, {.clip = {ratio}});
  };
  for (int64_t head = 0; head < kHeads; ++head) {
    AttentionError keys, both;
    for (int64_t q_head : {2 * head, 2 * head + 1}) {
      const auto q = values(rows.q, q_head), k = values(rows.k, head), v = values(rows.v, head),
                 k_hat = values(stored(rows.k, 0.96), head),
                 v_hat = values(stored(rows.v, 0.92), head);
      const AttentionRule rule = {problem.attention.scale, 30};
      keys.Merge(CompareAttention({kTokens, kDim, kDim, q, k, k_hat, v, v}, rule, options.windows,
                                  "keys"));
      both.Merge(CompareAttention({kTokens, kDim, kDim, q, k, k, v, v_hat}, rule, options.windows,
                                  "values"));
    }
    EXPECT_NEAR(kl[head].item<double>() / keys.kl_mean(), 1, 1e-4);
    const double mean = both.output_error_sq / static_cast<double>(both.rows * kDim);
    EXPECT_NEAR(output[head].item<double>() / mean, 1, 1e-4);
  }
}

TEST(RefinementLoss, TheOutputIsComparedBehindItsProjection) {
  RefinementProblem problem = Problem();
  const RefinementOptions options = Options(0);
  const HeadTransforms start = {Identity().transform.expand({kHeads, -1, -1}), {}};
  const auto value_loss = [&] {
    const RefinementLoss losses(problem, options, at::kCPU);
    return losses.Values(losses.PrepareValues(Sequence(9), start), start);
  };
  const at::Tensor plain = value_loss();
  problem.output_projection = at::eye(2 * kHeads * kDim, at::kFloat).mul(3);
  // The projected loss is a mean over hidden, which has num_q_heads times as many elements.
  EXPECT_TRUE(at::allclose(value_loss(), plain * 9 / (2 * kHeads)));
  problem.output_projection = at::zeros({5, 2 * kHeads * kDim}, at::kFloat);
  problem.output_projection.slice(1, 0, 2 * kDim).fill_(1);
  const at::Tensor first = value_loss();
  EXPECT_GT(first[0].item<double>(), 0);
  EXPECT_EQ(first[1].item<double>(), 0);
}

TEST(RotationRefinement, LowersTheLossOnRowsSetAsideAndStaysOrthogonal) {
  const RefinementProblem problem = Problem();
  const RefinementOptions options = Options(80);
  const RefinedSide keys = RefineKeys(problem, Identity(), options);
  const RefinedSide values = RefineValues(problem, Identity(), keys.transforms, options);
  for (const RefinedSide* side : {&keys, &values}) {
    ExpectOrthogonal(side->transforms.transform);
    EXPECT_TRUE(EveryHeadIsBetter(*side));
  }
  EXPECT_LT(keys.loss_after[0] + keys.loss_after[1],
            0.8 * (keys.loss_before[0] + keys.loss_before[1]));
  // The reported loss is the loss of the returned transforms.
  const RefinementLoss losses(problem, options, at::kCPU);
  const at::Tensor again =
      losses.Keys(losses.PrepareKeys(problem.rows.held_out[0]), keys.transforms);
  for (int64_t head = 0; head < kHeads; ++head)
    EXPECT_NEAR(again[head].item<double>(), keys.loss_after[static_cast<size_t>(head)], 1e-6);
}

TEST(RotationRefinement, IsAFunctionOfItsRows) {
  const RefinedSide one = RefineKeys(Problem(), Identity(), Options(20)),
                    two = RefineKeys(Problem(), Identity(), Options(20));
  EXPECT_TRUE(one.transforms.transform.equal(two.transforms.transform));
}

TEST(RotationRefinement, TakesSequencesByTurns) {
  const auto refined = [](int64_t per_step, uint64_t second) {
    RefinementProblem problem = Problem();
    EXPECT_EQ(problem.rows.fit.size(), 2U);
    problem.rows.fit[1] = Sequence(second);
    RefinementOptions options = Options(6);
    options.check_every = 1;
    options.k_sequences_per_step = per_step;
    return RefineKeys(problem, Identity(), options).transforms.transform;
  };
  EXPECT_TRUE(refined(0, 2).equal(refined(2, 2)));
  EXPECT_TRUE(refined(5, 2).equal(refined(2, 2)));  // a step takes a sequence only once
  EXPECT_FALSE(refined(1, 2).equal(refined(2, 2)));
  EXPECT_FALSE(refined(1, 2).equal(refined(1, 8)));
}

TEST(RefinementLoss, IsOfTheQueriesThatCount) {
  const RefinementProblem problem = Problem();
  const RefinementOptions options = Options(1);
  RefinementSequence rows = Sequence(4);
  const auto losses = [&](const RefinementSequence& of) {
    const RefinementLoss loss(problem, options, at::kCPU);
    const HeadTransforms start{at::eye(kDim, at::kFloat).expand({kHeads, kDim, kDim}), {}};
    return std::pair(loss.Keys(loss.PrepareKeys(of), start),
                     loss.Values(loss.PrepareValues(of, start), start));
  };
  const auto [keys, values] = losses(rows);
  rows.counted = at::ones({kTokens}, at::kFloat);
  const auto [same_keys, same_values] = losses(rows);
  EXPECT_LT(Largest(same_keys - keys), 1e-5 * Largest(keys));
  EXPECT_LT(Largest(same_values - values), 1e-5 * Largest(values));
  // The loss over all queries is the mean of the losses over two halves of them.
  at::Tensor even = at::zeros({kTokens}, at::kFloat);
  for (int64_t i = 0; i < kTokens; i += 2) even[i] = 1;
  rows.counted = even;
  const auto [even_keys, even_values] = losses(rows);
  rows.counted = 1 - even;
  const auto [odd_keys, odd_values] = losses(rows);
  EXPECT_LT(Largest((even_keys + odd_keys).div(2) - keys), 1e-5 * Largest(keys));
  EXPECT_LT(Largest((even_values + odd_values).div(2) - values), 1e-5 * Largest(values));
  EXPECT_GT(Largest(even_keys - odd_keys), 1e-3 * Largest(keys));
  // The content of a query that does not count has no effect.
  rows.q = rows.q.clone();
  for (int64_t i = 0; i < kTokens; i += 2) rows.q[i] = 100;
  EXPECT_TRUE(losses(rows).first.equal(odd_keys));
}

TEST(RefinementLoss, ValuesMayBeFittedToTheHeaviestTokens) {
  const RefinementProblem problem = Problem();
  const RefinementLoss losses(problem, Options(0), at::kCPU);
  const HeadTransforms start = {Identity().transform.expand({kHeads, -1, -1}), {}};
  const auto loss = [&](int64_t tokens) {
    const RefinementSample sample = losses.PrepareValues(Sequence(9), start, tokens);
    EXPECT_EQ(sample.values.size(1), tokens == 0 ? kTokens : std::min(tokens, kTokens));
    EXPECT_EQ(sample.probabilities.size(3), sample.values.size(1));
    return losses.Values(sample, start);
  };
  const at::Tensor all = loss(0);
  EXPECT_TRUE(loss(1000).equal(all));
  const at::Tensor share = loss(20) / all;
  for (int64_t head = 0; head < kHeads; ++head) {
    EXPECT_GT(share[head].item<double>(), 0.6);
    EXPECT_LT(share[head].item<double>(), 1.4);
  }
  const RefinementSample whole = losses.PrepareValues(Sequence(9), start, 0),
                         half = losses.PrepareValues(Sequence(9), start, 20);
  const double kept = half.probabilities.square().sum().item<double>();
  EXPECT_GT(kept, 0.8 * whole.probabilities.square().sum().item<double>());
}

TEST(RotationRefinement, NoStepsGiveTheStart) {
  ExpectStart(RefineKeys(Problem(), Identity(), Options(0)));
  ExpectStart(RefineValues(Problem(), Identity(), Identity(), Options(0)));
}

// Held-out keys lie on quantization levels and are stored exactly, so any refinement makes them
// worse.
TEST(RotationRefinement, WhatGetsWorseIsNotKept) {
  RefinementProblem problem = Problem();
  RefinementOptions options = Options(20);
  options.k.clip = {0};
  EXPECT_TRUE(EveryHeadIsBetter(RefineKeys(problem, Identity(), options)));
  for (RefinementSequence& rows : problem.rows.held_out) {
    rows.k = rows.k.sign().mul(3);
    rows.k.select(2, 0).fill_(3);
    rows.k.select(2, 1).fill_(-3);
  }
  const RefinedSide side = RefineKeys(problem, Identity(), options);
  ExpectStart(side);
  EXPECT_LT(side.loss_before[0], 1e-6);
}

TEST(RotationRefinement, WithoutQuantizerOrWithEverythingExactNothingMoves) {
  RefinementOptions off = Options(10);
  off.k.bits = off.v.bits = {0};
  const RefinedSide keys = RefineKeys(Problem(), Identity(), off);
  EXPECT_LT(keys.loss_before[0], 1e-9);  // logits are unchanged up to rounding
  RefinementOptions windows = Options(10);
  windows.windows = {0, kTokens};
  for (const RefinedSide& side : {RefineKeys(Problem(), Identity(), windows),
                                  RefineValues(Problem(), Identity(), Identity(), windows)}) {
    ExpectStart(side);
    EXPECT_EQ(side.loss_before, std::vector<double>(kHeads, 0));
  }
}

TEST(RotationRefinement, AConstantInAllKeysChangesNothing) {
  RefinementProblem problem = Problem();
  problem.key_mean = at::zeros({kHeads, kDim}, at::kFloat);
  const RefinedSide before = RefineKeys(problem, Identity(), Options(0));
  const at::Tensor constant = at::arange(kHeads * kDim, at::kFloat).view({kHeads, kDim}).sub(9);
  problem.key_mean = constant;
  for (auto* sequences : {&problem.rows.fit, &problem.rows.held_out}) {
    for (RefinementSequence& rows : *sequences) rows.k = rows.k.add(constant);
  }
  const RefinedSide after = RefineKeys(problem, Identity(), Options(0));
  for (size_t head = 0; head < kHeads; ++head)
    EXPECT_NEAR(after.loss_before[head] / before.loss_before[head], 1, 1e-3);
}

TEST(RotationRefinement, AnyInvertibleTransformMayBeTheStart) {
  at::manual_seed(3);
  const at::Tensor scales = at::exp(at::randn({1, kDim}, at::kFloat));
  const HeadTransforms start = {at::diag_embed(scales), at::diag_embed(scales.reciprocal())};
  const RefinedSide side = RefineKeys(Problem(), start, Options(40));
  EXPECT_NE(side.loss_after, side.loss_before);
  const auto& [transform, inverse] = side.transforms;
  EXPECT_LT(Largest(at::matmul(transform, inverse) - at::eye(kDim)), 1e-5);
  ExpectOrthogonal(at::matmul(start.inverse, transform));
}

}  // namespace
}  // namespace oscar
