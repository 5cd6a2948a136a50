// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choices for one layer, one for each consumer's rules: greedy searches in a fixed
// order. Every candidate is fitted without the held-out rows, and AutoScorer scores it on them. A
// choice is a recipe; its published matrices are fitted again, to all tokens (FitChoices).
#pragma once

#include <functional>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/choose/recipe_fit.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

// Returns the windows in use, followed by other windows that are priced.
std::vector<CacheWindows> PricedWindows(const CacheWindows& in_use);
// Returns the numbers of bits to search in addition to 2, which every search uses.
std::vector<int> MoreBits(const AutoOptions& options);

// Calls `search` for `options` and each of `others`, only once for options that share a search
// (ShareSearch).
std::vector<AutoChoice> SearchEach(
    const AutoOptions& headline, const std::vector<AutoOptions>& others,
    const std::function<AutoChoice(const AutoOptions& options, bool is_headline)>& search);

// Returns the choice for `options`, followed by one for each of `others` (OtherChoices). A simpler
// search makes the other choices with 2 bits: it does not measure stability or price windows.
// Candidates are scored once. Needs held-out queries. `observed.fit` has the sums of the fitted
// rows, to which the choices' matrices are fitted. Adds its phases to `times` as "choice: ...".
std::vector<AutoChoice> SearchChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                      const SearchOptions& options,
                                      const std::vector<AutoOptions>& others, PhaseTimes& times);

}  // namespace oscar
