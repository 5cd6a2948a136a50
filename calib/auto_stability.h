// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether there were enough tokens for a layer's choice: its recipes fitted to half of them. Why by
// scores and not by angles: README.md.
#pragma once

#include "calib/auto_choice.h"
#include "calib/auto_fit.h"
#include "calib/auto_scorer.h"
#include "calib/statistics_observer.h"
#include "capture/model/rope_spec.h"

namespace oscar {

// Of a choice whose recipes, options and context are made. Not measured where no half was kept.
// Values are judged by the target that halves are known for, the noisier one.
Stability MeasureStability(const ObservedLayer& observed, const RopeSpec& rope,
                           const FoldRules& fold, const AutoChoice& choice,
                           const AutoScorer& scorer);

}  // namespace oscar
