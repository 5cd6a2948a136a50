// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits recipes to the moments of a layer.
#pragma once

#include <span>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/moments/layer_moments.h"

namespace oscar {

// Fit recipes on all cores. The side of a recipe that cannot be fitted (a moment is singular even
// after shrinkage) has num_rotations 0.
std::vector<CacheSide> FitKeys(const LayerMoments& moments, const std::vector<KeyRecipe>& recipes);
std::vector<CacheSide> FitValues(const LayerMoments& moments,
                                 const std::vector<ValueRecipe>& recipes);

// A recipe for the row that is both key and value in latent attention.
struct LatentRecipe {
  KeyRecipe keys;
  ValueTarget target = ValueTarget::kAttentionOutput;  // used together with the queries' covariance

  std::string Name() const { return keys.Name() + " to " + std::string(ValueTargetName(target)); }
  bool operator==(const LatentRecipe&) const = default;
};
std::vector<CacheSide> FitLatents(const LayerMoments& moments,
                                  const std::vector<LatentRecipe>& recipes);

// Fits the chosen recipes of one layer to `all` tokens and stores them in each choice's k and v.
// Throws NumericalError naming the layer and the recipes that cannot be fitted.
void FitChoices(const LayerMoments& all, std::span<AutoChoice> choices);

// Returns `all` without its part `first`, with only the sums that both have.
LayerMoments OtherHalf(const LayerMoments& all, const LayerMoments& first);

// Returns a Stability without costs, which only tells whether one half has too few tokens.
Stability CompareHalves(const LayerMoments& first, const LayerMoments& second);

}  // namespace oscar
