// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the automatic choice for latents with the scores that it recorded.
#include "calib/search/latent_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/calib/observe/golden_layer.h"
#include "tests/calib/search/searched_layer.h"

namespace oscar {
namespace {

struct Tried {
  std::string recipe;
  double damage = 1e9, damage_check = 1e9;  // at the best ratio on the choosing rows
};

// Returns the recipes in the order of trial. In `scores`, each score of a key is followed by that
// of its value.
std::vector<Tried> TriedRecipes(const AutoChoice& choice) {
  std::vector<Tried> tried;
  const CandidateScore &k0 = choice.scores.at(0), &v0 = choice.scores.at(1);
  for (size_t i = 0; i + 1 < choice.scores.size(); i += 2) {
    const CandidateScore &k = choice.scores[i], &v = choice.scores[i + 1];
    EXPECT_EQ(k.recipe, v.recipe);
    if (k.bits != 2 || k.quant_group_size != choice.quant_group_size) continue;
    auto at = std::ranges::find(tried, k.recipe, &Tried::recipe);
    if (at == tried.end()) at = tried.insert(at, {k.recipe});
    const double damage = std::sqrt(k.score / k0.score) + v.score / v0.score;
    if (damage >= at->damage) continue;
    at->damage = damage;
    at->damage_check = std::sqrt(k.check / k0.check) + v.check / v0.check;
  }
  return tried;
}

constexpr int64_t kTokens = 320;

// Checks the choice against its scores. Returns whether the judging rows overruled it.
bool OverruledByJudgingRows(const GoldenLatents& layer) {
  const ObservedLayer observed = Observe(layer, searched::kSplit, 64);
  const AutoChoice choice = searched::Searched(observed, layer.spec, searched::Options());
  const std::vector<Tried> tried = TriedRecipes(choice);
  EXPECT_GE(tried.size(), 8U);
  const size_t best = searched::ByTheRule(tried.size(), [&](size_t i) { return tried[i].damage; });
  const bool worse = tried[best].damage_check > tried[0].damage_check;
  const std::string name =
      choice.keys.Name() + " to " + std::string(ValueTargetName(choice.values.target));
  EXPECT_NE(best, 0U);
  EXPECT_EQ(name, tried[worse ? 0 : best].recipe);
  EXPECT_EQ(choice.k_fallback, worse ? tried[best].recipe : "");
  return worse;
}

// Queries hardly read one half of the latent, and values do not read it at all.
TEST(LatentSearch, TheLeastDamageAsKeyAndValueIsChosenAndJudged) {
  GoldenLatents layer = RandomLatents(4, 32, {kTokens, kTokens, kTokens, kTokens}, 11);
  layer.kv_b.narrow(1, 0, 3).narrow(2, 16, 16).zero_();
  layer.kv_b.narrow(1, 3, 3).narrow(2, 0, 16).zero_();
  layer.kv_b.narrow(1, 6, 5).narrow(2, 16, 16).zero_();
  for (at::Tensor& q : layer.q) q.narrow(-1, 3, 3).mul_(0.02);
  EXPECT_FALSE(OverruledByJudgingRows(layer));
  // Judging rows read mainly the half that other rows hardly read, with larger logits.
  const at::Tensor judging = at::arange(9, kTokens, 10);
  const at::Tensor swapped = at::tensor({3, 4, 5, 0, 1, 2, 6, 7, 8, 9}, at::kLong);
  at::Tensor& q = layer.q.back();
  q.index_copy_(0, judging, q.index_select(0, judging).index_select(-1, swapped).mul(3));
  EXPECT_TRUE(OverruledByJudgingRows(layer));
}

}  // namespace
}  // namespace oscar
