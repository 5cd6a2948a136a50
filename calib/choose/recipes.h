// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The recipes that the search for a layer tries, limited to those that the consumer can load. The
// least demanding come first, because a more demanding one is chosen only if it is clearly better.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/consumers.h"

namespace oscar {

struct RecipeLimits {
  const ConsumerRules& rules;
  Composition composition = Composition::kRHPbr;  // the requested composition
  bool rope = false;      // whether rope is known, so that pairs can be scaled
  bool fold = false;      // whether pair scales may go into the checkpoint
  bool feedback = false;  // whether the writer can feed back errors of keys
  int64_t num_kv_heads = 1;
  int64_t quant_group_size = 0;  // 0: the head dimension
};

// Returns the first recipes. The very first is Hadamard, the guard's data-free fallback.
std::vector<KeyRecipe> FirstKeyRecipes(const RecipeLimits& limits);
// Returns other transforms for the grouping and centring of `like`.
std::vector<KeyRecipe> MoreKeyRecipes(const RecipeLimits& limits, const KeyRecipe& like);
std::vector<ValueRecipe> FirstValueRecipes(const RecipeLimits& limits, bool diagonal);

// Returns other orders of a rotation's factors to try for heads of size `dim`. A Hadamard factor
// spreads its input; orders that end with eigenvectors concentrate it. Without quantization groups,
// a final P changes nothing, so orders that differ only in it are left out.
std::vector<Composition> OtherOrders(const RecipeLimits& limits, int64_t dim);

}  // namespace oscar
