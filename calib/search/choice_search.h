// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choices for one layer, one for every consumer's rules: greedy searches in a fixed
// order, every candidate fitted without the held-out rows and scored on them by AutoScorer. A
// choice is a recipe; what is published is fitted again, to all tokens (FitChoices).
#pragma once

#include <functional>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/choose/recipe_fit.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

// Returns the windows in use, and the windows that are priced beside them.
std::vector<CacheWindows> PricedWindows(const CacheWindows& in_use);
// Returns the bits other than the two that a search itself uses.
std::vector<int> MoreBits(const AutoOptions& options);

// Calls `search` with `options` and each of `others`, once for those that share it (ShareSearch).
std::vector<AutoChoice> SearchEach(
    const AutoOptions& headline, const std::vector<AutoOptions>& others,
    const std::function<AutoChoice(const AutoOptions& options, bool is_headline)>& search);

// Returns the choice under `options`, searched in depth, and those under `others` (OtherChoices).
// Those with 2 bits have no stability and no prices of windows. Candidates are scored once. Needs
// held-out queries. `observed.fit` has the sums of the fitted rows; the choices' matrices are
// fitted to them. Phases go into `times` as "choice: ...".
std::vector<AutoChoice> SearchChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                      const SearchOptions& options,
                                      const std::vector<AutoOptions>& others, PhaseTimes& times);

}  // namespace oscar
