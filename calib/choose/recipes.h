// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes that a layer's search tries, of those that the consumer can load. The least demanding
// come first, because a later one has to be worth its demands.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/consumers.h"

namespace oscar {

struct RecipeLimits {
  const ConsumerRules& rules;
  Composition composition = Composition::kRHPbr;  // that was asked for
  bool rope = false;                              // known, so that pairs of channels can be scaled
  bool fold = false;                              // and their scales go into the checkpoint
  bool feedback = false;                          // the writer can feed errors of keys back
  int64_t num_kv_heads = 1;
  int64_t quant_group_size = 0;  // 0: the head
};

// Returns the first recipes. The very first is Hadamard, the guard's data-free fallback.
std::vector<KeyRecipe> FirstKeyRecipes(const RecipeLimits& limits);
// Returns other transforms for the grouping and centring of `like`.
std::vector<KeyRecipe> MoreKeyRecipes(const RecipeLimits& limits, const KeyRecipe& like);
std::vector<ValueRecipe> FirstValueRecipes(const RecipeLimits& limits, bool diagonal);

// Returns orders of a rotation's factors, for heads of `dim`, other than the one asked for. Their
// Hadamard spreads its input; orders that end in eigenvectors concentrate it. Without quantization
// groups a last P changes nothing.
std::vector<Composition> OtherOrders(const RecipeLimits& limits, int64_t dim);

}  // namespace oscar
