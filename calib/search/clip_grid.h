// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Clip ratios for a transformed side: the ratios to try, and the scores of those that were tried. A
// head's own ratio replaces the layer's only if it is better by kWorthwhile on the choosing rows
// and no worse on the judging rows. Otherwise noise would decide, because it is the best of six
// scores.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/search/scorer.h"

namespace oscar {

// Clip ratios to try for a number of bits, and the one that is used while recipes are compared.
// Finer codes need less clipping.
struct ClipGrid {
  int bits;
  std::vector<double> ratios;  // ascending
  double first;
};
const ClipGrid& GridOf(int bits);  // 2, 3, 4 or 8

// Scores of one transformed side over clip ratios, in ascending order of the ratios.
using Curve = std::vector<std::pair<double, HeadScores>>;

double ScoreOf(const HeadScores& scores);  // mean over heads, on the choosing rows
// Returns whether `later`, which demands more of its reader or of its fit, is worth it. It must be
// better by `share`, and by more than the standard error of the mean log ratio over texts (the
// one-standard-error rule: Hastie, Tibshirani and Friedman, The Elements of Statistical Learning,
// 7.10).
bool WorthMore(const HeadScores& later, const HeadScores& earlier, double share = kWorthwhile);
size_t Best(const Curve& curve);
void Insert(Curve& curve, double ratio, HeadScores scores);
bool Has(const Curve& curve, double ratio);

// Returns one ratio for all heads, or each head's own ratio if it is clearly better.
SideOption OptionOf(int bits, const Curve& curve, bool clip_of_head);

}  // namespace oscar
