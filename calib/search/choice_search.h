// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the automatic choices for one layer, one for each consumer's rules, by greedy searches in a
// fixed order. Every candidate is fitted without the held-out rows, on which AutoScorer scores it.
// A choice is a recipe: its matrices are fitted again, to all tokens, before they are published
// (FitChoices).
#pragma once

#include <functional>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/choose/recipe_fit.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

// Returns the windows in use, followed by other windows whose effect is scored.
std::vector<CacheWindows> PricedWindows(const CacheWindows& in_use);
// Returns the numbers of bits to search in addition to 2, which every search uses.
std::vector<int> MoreBits(const AutoOptions& options);

// Calls `search` for `headline` and each of `others`, but only once for options that share a search
// (ShareSearch).
std::vector<AutoChoice> SearchEach(
    const AutoOptions& headline, const std::vector<AutoOptions>& others,
    const std::function<AutoChoice(const AutoOptions& options, bool is_headline)>& search);

// Returns the choice for `options`, followed by one for each of `others` (OtherChoices). Other
// choices with 2 bits everywhere are made by a simpler search, which neither measures stability nor
// scores other windows. No candidate is scored twice. Needs held-out queries. The choices' matrices
// are fitted to `observed.fit`, the sums of the fitted rows. Adds its phases to `times` as "choice:
// ...".
std::vector<AutoChoice> SearchChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                      const SearchOptions& options,
                                      const std::vector<AutoOptions>& others, PhaseTimes& times);

}  // namespace oscar
