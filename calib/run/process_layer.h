// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One observed layer to its result: rotations, clip ratios, thresholds, attention errors.
//
// Honest and complete at once: what is *judged* on held-out rows (clip ratios, errors) uses
// rotations fitted without those rows; what is *published* is then refitted on all tokens.
#pragma once

#include "calib/held_out.h"
#include "calib/job/layer_result.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

inline constexpr int64_t kNumArms = 5;  // ways to store the cache that are compared, but choices

// Consumes `observed`. Throws NumericalError naming layer and head.
LayerResult ProcessLayer(ObservedLayer observed, const LayerSpec& spec, const HeldOutSplit& split,
                         const CalibrationOptions& options, PhaseTimes& times);

}  // namespace oscar
