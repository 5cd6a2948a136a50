// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits for each KV head of a layer's side: between options of whole bits for all heads, those whose
// heads have bits of their own, by marginal damage (bit_allocation.h). The plan of all layers
// takes an option or leaves it, so heads of several layers are traded in steps of half a bit.
#pragma once

#include <span>
#include <vector>

#include "calib/choose/choice.h"

namespace oscar {

// Mean bits at which heads are mixed.
inline constexpr double kMixedBits[] = {2.5, 3, 3.5};

// Adds mixed options to `options`, ascending whole bits with head_score and head_check each: at
// most one at each of kMixedBits below the last, an option of all heads alike replaced only by one
// that is better by kWorthwhile and no worse on the rows that judge. `in_windows`
// [options][windows][num_kv_heads]: keys' scores in windows; empty: values, whose damage goes with
// the square of their score.
void AddHeadBits(std::span<const std::vector<std::vector<double>>> in_windows,
                 std::vector<SideOption>& options);

}  // namespace oscar
