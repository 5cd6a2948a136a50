// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes fitted to the moments of a layer. Pair scales that go into weights which all heads
// share (QK-norm) are one vector per layer, whatever the rotations are.
#pragma once

#include <vector>

#include "calib/auto_choice.h"
#include "calib/layer_moments.h"

namespace oscar {

// Of one layer of a model.
struct FoldRules {
  RopePairs pairs;             // rotary_dim 0: not known, so nothing can be folded
  bool shared_scales = false;  // one scale vector for all heads
};

// On all cores. A recipe that has no fit (a moment that is singular beyond what its shrinkage
// mends) comes back with num_rotations 0.
std::vector<AutoSide> FitKeys(const LayerMoments& moments, const std::vector<KeyRecipe>& recipes,
                              const FoldRules& fold);
std::vector<AutoSide> FitValues(const LayerMoments& moments,
                                const std::vector<ValueRecipe>& recipes);

// The sums of `all` that `first`, which is part of them, has too, without those.
LayerMoments OtherHalf(const LayerMoments& all, const LayerMoments& first);

// How far apart the leading subspaces of two halves of the tokens are, and whether one is small or
// empty; without costs.
Stability CompareHalves(const LayerMoments& first, const LayerMoments& second);

}  // namespace oscar
