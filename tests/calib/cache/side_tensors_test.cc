// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests transformed rows before quantization: for every recipe, the softmax weights are those of
// the model, and values survive the round trip.
#include "calib/cache/side_tensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/calib/choose/sample_choice.h"
#include "tests/calib/moments/sample_moments.h"

namespace oscar {
namespace {

constexpr int64_t kHeads = 2, kDim = 8, kValueDim = 4, kTokens = 40;

// Returns the softmax weights [kHeads, 2, kTokens, kTokens] of 2 query heads per KV head.
at::Tensor Weights(const at::Tensor& q, const at::Tensor& k /* [heads, tokens, dim] */) {
  const at::Tensor heads = q.view({kTokens, kHeads, 2, kDim}).permute({1, 2, 0, 3});
  return at::matmul(heads, k.transpose(1, 2).unsqueeze(1)).div(8).softmax(-1);
}

SidesOnDevice One(const CacheSide& side) { return OneSide(side, at::kCPU); }

TEST(AutoCache, WeightsAreThoseOfTheModelAndValuesComeBack) {
  at::manual_seed(5);
  const LayerMoments moments = SampleMoments(2, 200, 5);
  const at::Tensor mean = at::arange(kDim).to(at::kFloat).add(1).mul(0.3);
  const at::Tensor k = at::randn({kTokens, kHeads, kDim}).add(mean),
                   q = at::randn({kTokens, 2 * kHeads, kDim}),
                   v = at::randn({kTokens, kHeads, kValueDim});
  const at::Tensor exact = Weights(q, k.permute({1, 0, 2}));
  for (const SampleRecipe& recipe : SampleRecipes()) {
    SCOPED_TRACE(recipe.keys.Name());
    const AutoChoice choice = SampleChoice(moments, recipe);
    const at::Tensor keys = KeysOfOne(One(choice.k), k),
                     queries = QueriesOfOne(One(choice.k), q, kHeads);
    EXPECT_LT((Weights(queries, keys) - exact).abs().max().item<double>(), 0.01);
    const at::Tensor back = ValuesBackOfOne(One(choice.v), ValuesOfOne(One(choice.v), v));
    EXPECT_LT((back.permute({1, 0, 2}) - v).abs().max().item<double>(), 0.03);
  }
}

// SampleMoments has the mean 0.3 (i + 1) in channel i, and so do these keys.
TEST(AutoCache, CentredKeysHaveNoMean) {
  at::manual_seed(6);
  const LayerMoments moments = SampleMoments(2, 400, 5);
  const at::Tensor channel = at::arange(kDim).to(at::kFloat).add(1);
  const at::Tensor k = at::randn({4000, kHeads, kDim}).add(0.3).mul(channel);
  for (SampleRecipe recipe : SampleRecipes()) {
    SCOPED_TRACE(recipe.keys.Name());
    const auto mean = [&](bool centred) {
      recipe.keys.centred = centred;
      return KeysOfOne(One(SampleChoice(moments, recipe).k), k).mean(1).norm().item<double>();
    };
    EXPECT_LT(mean(true), 0.5 * mean(false));
  }
}

}  // namespace
}  // namespace oscar
