// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice for one layer: a greedy search in a fixed order, every candidate fitted
// without the held-out rows and scored on them by AutoScorer. Trap: a choice is a recipe; what is
// published is fitted again, to all tokens (FitChoice).
#pragma once

#include <vector>

#include "calib/auto_choice.h"
#include "calib/auto_fit.h"
#include "calib/options.h"
#include "calib/phase_times.h"
#include "calib/statistics_observer.h"

namespace oscar {

// What the layer's weights allow. Nothing is folded where the rope is not known (a dump).
FoldRules FoldRulesOf(const AttentionSpec& attention);

// Windows in use, and those that are priced beside them.
std::vector<CacheWindows> PricedWindows(const CalibrationOptions& options);
// Bits beyond the two that a search itself uses.
std::vector<int> MoreBits(const CalibrationOptions& options);

// Needs held-out queries. `observed.fit` has the sums of the rows that are fitted to; the choice's
// matrices are fitted to them. Its phases go into `times` as "choice: ...".
AutoChoice SearchChoice(const ObservedLayer& observed, const LayerSpec& spec,
                        const CalibrationOptions& options, PhaseTimes& times);

// The chosen recipes fitted to `all` tokens, into choice.k and choice.v.
void FitChoice(const LayerMoments& all, const LayerSpec& spec, AutoChoice& choice);

}  // namespace oscar
