// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a layer's choice may still become once all layers are known: a clip ratio that all layers
// share, bits under a budget. The layer is gone by then, so the arm `auto` is measured at every
// such point while it is there, and the one that was decided on is what a report says. A
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

// Where the choice may end; the first is where it stands. Those of equal keys follow each other.
std::vector<ChoicePoint> PointsOf(const AutoOptions& options, const AutoChoice& choice);

// Where a choice stands, as one of those points.
ChoicePoint PointOf(const AutoOptions& options, const AutoChoice& choice);

// The choice as it is there; its matrices stay where they are.
SideOption KeysAt(const AutoChoice& choice, const ChoicePoint& point);
SideOption ValuesAt(const AutoChoice& choice, const ChoicePoint& point);

}  // namespace oscar
