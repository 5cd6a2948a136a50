// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/calib/choose/sample_choice.h"

#include "calib/choose/recipe_fit.h"

namespace oscar {

std::vector<SampleRecipe> SampleRecipes() {
  using Kind = KeyTransformKind;
  return {{.keys = {}, .values = {}},
          {.keys = {.per_head = true, .centred = true}, .values = {.per_head = true}},
          {.keys = {.kind = Kind::kPairScaled, .power_of_two = true},
           .values = {.target = ValueTarget::kDiagonal}},
          {.keys = {.kind = Kind::kPairScaled, .per_head = true, .centred = true},
           .values = {.per_head = true}},
          {.keys = {.kind = Kind::kPairScaled, .folded = false, .per_head = true, .centred = true},
           .values = {.composition = Composition::kHPbr}},
          {.keys = {.kind = Kind::kBalanced, .epsilon = 0.1, .per_head = true, .centred = true},
           .values = {.target = ValueTarget::kDiagonal, .per_head = true}}};
}

AutoChoice SampleChoice(const LayerMoments& moments, const SampleRecipe& recipe) {
  AutoChoice choice;
  choice.made = true;
  choice.keys = recipe.keys;
  choice.values = recipe.values;
  choice.quant_group_size = recipe.quant_group_size;
  choice.k_output_error = 0.5;
  choice.windows = {{{64, 256}, 10}, {{0, 0}, 12}, {{128, 1024}, 4}};
  for (const double bits : {2, 3, 4}) {
    const double score = 1.0 / (bits * bits * (moments.layer_id + 1));
    choice.k_options.push_back({.bits = bits,
                                .clip = recipe.k_clip,
                                .score = score,
                                .check = score,
                                .ratios = {recipe.k_clip[0]},
                                .curve = {score},
                                .in_windows = {score, 2 * score, score / 2}});
    choice.v_options.push_back({.bits = bits,
                                .clip = recipe.v_clip,
                                .score = score,
                                .check = score,
                                .ratios = {recipe.v_clip[0]},
                                .curve = {score}});
  }
  LayerMoments with_pairs = moments;
  with_pairs.fold = {.pairs = {.rotary_dim = moments.head_dim}};
  choice.k = FitKeys(with_pairs, {recipe.keys}).at(0);
  choice.v = FitValues(moments, {recipe.values}).at(0);
  return choice;
}

}  // namespace oscar
