// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The points that a layer's choice may still move to once all layers are known: a clip ratio that
// all layers share, bits under a budget. The layer is gone by then. The arm `auto` is therefore
// measured at every such point beforehand, and a report shows the point that was decided on. A
// consumer that takes one ratio per side has few ratios to choose from, because points are pairs.
#pragma once

#include <vector>

#include "calib/choose/choice.h"
#include "calib/consumers.h"

namespace oscar {

// Clip ratios of 2-bit codes where one serves all layers.
const std::vector<double>& SharedRatios();

struct ChoicePoint {
  double k_bits = 2, v_bits = 2;  // as SideOption::bits
  double k_clip = 0, v_clip = 0;  // of all heads; 0: what each head of the layer has at those bits

  bool operator==(const ChoicePoint&) const = default;
};

// Returns where the choice may end, the current point first. Points of equal keys are adjacent.
std::vector<ChoicePoint> PointsOf(const AutoOptions& options, const AutoChoice& choice);

// Returns the current point of a choice, which is one of those points.
ChoicePoint PointOf(const AutoOptions& options, const AutoChoice& choice);

// Return the option of keys or values at a point. The matrices of the choice do not change.
SideOption KeysAt(const AutoChoice& choice, const ChoicePoint& point);
SideOption ValuesAt(const AutoChoice& choice, const ChoicePoint& point);

}  // namespace oscar
