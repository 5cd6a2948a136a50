// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits for each KV head of a layer's side. Options whose heads have bits of their own, chosen by
// marginal damage (bit_allocation.h), are added between options of whole bits for all heads. The
// plan of all layers takes an option or leaves it, so heads of several layers trade in half bits.
#pragma once

#include <span>
#include <vector>

#include "calib/choose/choice.h"

namespace oscar {

// Mean bits at which heads are mixed.
inline constexpr double kMixedBits[] = {2.5, 3, 3.5};

// Adds mixed options to `options`, which have ascending whole bits, head_score and head_check. At
// most one is added at each of kMixedBits below the last. An option with equal heads is only
// replaced by one that is better by kWorthwhile and no worse on the rows that judge. `in_windows`
// [options][windows][num_kv_heads]: keys' scores in windows; empty: values, whose damage goes with
// the square of their score.
void AddHeadBits(std::span<const std::vector<std::vector<double>>> in_windows,
                 std::vector<SideOption>& options);

}  // namespace oscar
