// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Clip ratios of a transformed side: which are tried, and the scores of those that were. Trap: a
// ratio of one head replaces the layer's only where it is better by kWorthwhile, and all of them
// only where the judging rows agree.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "calib/auto_choice.h"
#include "calib/auto_scorer.h"

namespace oscar {

// Clip ratios to try for so many bits, the first one while recipes are compared. Finer codes clip
// less.
struct ClipGrid {
  int bits;
  std::vector<double> ratios;  // ascending
  double first;
};
const ClipGrid& GridOf(int bits);  // 2, 3, 4 or 8

// Scores of one transformed side over clip ratios, in ascending order of the ratio.
using Curve = std::vector<std::pair<double, HeadScores>>;

double ScoreOf(const HeadScores& scores);  // mean over heads, on the rows that choose
size_t Best(const Curve& curve);
void Insert(Curve& curve, double ratio, HeadScores scores);
bool Has(const Curve& curve, double ratio);

// One ratio for all heads, or the best of each.
SideOption OptionOf(int bits, const Curve& curve, bool clip_of_head);

}  // namespace oscar
