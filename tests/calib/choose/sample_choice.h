// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Automatic choices without a search: recipes fitted to the moments of a sample layer.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/moments/layer_moments.h"

namespace oscar {

struct SampleRecipe {
  KeyRecipe keys;
  ValueRecipe values;
  std::vector<double> k_clip = {0.92}, v_clip = {0.9};
  int64_t quant_group_size = 0;
};

// Returns a recipe of each kind: shared, per head, centred, folded scales, scales in both matrices,
// balanced.
std::vector<SampleRecipe> SampleRecipes();

// Makes a choice with scores for 2, 3 and 4 bits and windows, and the recipe's clip ratios.
AutoChoice SampleChoice(const LayerMoments& moments, const SampleRecipe& recipe);

}  // namespace oscar
