// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The points to which a layer's choice may still move once all layers are known: another clip
// ratio, if all layers share one, or other bits under a budget. The layer's rows are no longer in
// memory then. The errors of the choice (`auto` in reports) are therefore measured at every such
// point beforehand, and a report shows those of the final point. If a consumer takes one ratio per
// side, points are pairs of ratios, so only few ratios are tried.
#pragma once

#include <vector>

#include "calib/choose/choice.h"
#include "calib/consumers.h"

namespace oscar {

// Clip ratios for 2-bit codes if all layers share one.
const std::vector<double>& SharedRatios();

struct ChoicePoint {
  double k_bits = 2, v_bits = 2;  // like SideOption::bits
  double k_clip = 0, v_clip = 0;  // for all heads; 0: each head's own ratio at those bits

  bool operator==(const ChoicePoint&) const = default;
};

// Returns the points where the choice may end, the current one first. Points with equal keys are
// adjacent.
std::vector<ChoicePoint> PointsOf(const AutoOptions& options, const AutoChoice& choice);

// Returns the current point of a choice, which is one of PointsOf.
ChoicePoint PointOf(const AutoOptions& options, const AutoChoice& choice);

// Return the option of keys or values at a point. The matrices of the choice do not change.
SideOption KeysAt(const AutoChoice& choice, const ChoicePoint& point);
SideOption ValuesAt(const AutoChoice& choice, const ChoicePoint& point);

}  // namespace oscar
