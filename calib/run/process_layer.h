// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns one observed layer into its result: rotations, clip ratios, thresholds, attention errors.
//
// Clip ratios and errors are judged on held-out rows, with rotations fitted without those rows. The
// published rotations are then refitted on all tokens.
#pragma once

#include "calib/held_out.h"
#include "calib/job/layer_result.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

inline constexpr int64_t kNumArms = 5;  // compared ways to store the cache, without choices

// Consumes `observed`. Throws NumericalError naming the layer and head.
LayerResult ProcessLayer(ObservedLayer observed, const LayerSpec& spec, const HeldOutSplit& split,
                         const CalibrationOptions& options, PhaseTimes& times);

}  // namespace oscar
