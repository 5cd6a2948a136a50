// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/recipes.h"

namespace oscar {
namespace {

// Shares of the keys' mean to subtract. Half is the safe choice if means differ much between texts.
constexpr double kMeanShares[] = {0, 0.5, 1};

// Adds `recipe` with one matrix for all heads and with one per head, each for all shares of the
// mean to subtract. Skips what the consumer does not support. The least demanding recipes come
// first.
void AddGroupings(const RecipeLimits& limits, KeyRecipe recipe, std::vector<KeyRecipe>& recipes) {
  for (const bool per_head : {false, true}) {
    for (const double share : kMeanShares) {
      recipe.per_head = per_head;
      recipe.centred = share > 0;
      recipe.mean_share = recipe.centred ? share : 1;
      const bool allowed = (!per_head || (limits.rules.per_head && limits.num_kv_heads > 1)) &&
                           (!recipe.centred || limits.rules.key_mean);
      if (allowed) recipes.push_back(recipe);
    }
  }
}

}  // namespace

std::vector<KeyRecipe> FirstKeyRecipes(const RecipeLimits& limits) {
  std::vector<KeyRecipe> recipes = {{.composition = Composition::kHPbr}};
  AddGroupings(limits, {.composition = limits.composition}, recipes);
  if (!limits.fold) return recipes;
  AddGroupings(limits,
               {.kind = KeyTransformKind::kPairScaled,
                .power_of_two = true,
                .composition = limits.composition},
               recipes);
  return recipes;
}

std::vector<KeyRecipe> MoreKeyRecipes(const RecipeLimits& limits, const KeyRecipe& like) {
  std::vector<KeyRecipe> recipes;
  if (limits.fold) {
    recipes.push_back({.kind = KeyTransformKind::kPairScaled,
                       .power_of_two = true,
                       .centred = like.centred,
                       .mean_share = like.mean_share,
                       .composition = Composition::kHPbr});
  }
  if (!limits.rules.query_matrix) return recipes;
  // Here queries have their own matrix, so pair scales go into the matrices of keys and queries and
  // not into the model's weights.
  KeyRecipe own{.per_head = true,
                .centred = like.centred,
                .mean_share = like.mean_share,
                .composition = limits.composition};
  if (limits.rope) {
    own.kind = KeyTransformKind::kPairScaled;
    own.folded = false;
    recipes.push_back(own);
    own.folded = true;
  }
  // The best balance depends on the share of the mean, so all shares are tried again.
  own.kind = KeyTransformKind::kBalanced;
  own.epsilon = 0.3;  // 0.03 to 1 were equally good on held-out text
  for (const double share : kMeanShares) {
    own.centred = share > 0;
    own.mean_share = own.centred ? share : 1;
    if (!own.centred || limits.rules.key_mean) recipes.push_back(own);
  }
  return recipes;
}

std::vector<ValueRecipe> FirstValueRecipes(const RecipeLimits& limits, bool diagonal) {
  std::vector<ValueRecipe> recipes = {{.composition = Composition::kHPbr}};
  for (const bool per_head : {false, true}) {
    if (per_head && (!limits.rules.per_head || limits.num_kv_heads == 1)) continue;
    for (const ValueTarget target : {ValueTarget::kAttentionOutput, ValueTarget::kDiagonal}) {
      if (target == ValueTarget::kDiagonal && !diagonal) continue;
      recipes.push_back({target, per_head, limits.composition});
    }
  }
  return recipes;
}

std::vector<Composition> OtherOrders(const RecipeLimits& limits, int64_t dim) {
  std::vector<Composition> others = {Composition::kRHPbr, Composition::kBrH128};
  const int64_t group = limits.quant_group_size;
  if (group > 0 && group < dim) others.push_back(Composition::kRH);
  std::erase(others, limits.composition);
  return others;
}

}  // namespace oscar
