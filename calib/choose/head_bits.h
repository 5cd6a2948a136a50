// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits for each KV head on one side of a layer. Between the options with the same whole bits for
// all heads, it adds options with separate bits per head, chosen by marginal damage
// (bit_allocation.h). The plan for all layers only chooses among these options, so layers trade
// bits in steps of a half.
#pragma once

#include <span>
#include <vector>

#include "calib/choose/choice.h"

namespace oscar {

// Mean bits of the mixed options.
inline constexpr double kMixedBits[] = {2.5, 3, 3.5};

// Adds mixed options to `options`, which have ascending whole bits, head_score and head_check. Adds
// at most one at each of kMixedBits below the last option's bits. A mixed option replaces one with
// the same bits for all heads only if it is better by kWorthwhile and no worse on the judging rows.
// `in_windows` [options][windows][num_kv_heads]: window scores of keys. It is empty for values,
// whose damage is proportional to the square of their score.
void AddHeadBits(std::span<const std::vector<std::vector<double>>> in_windows,
                 std::vector<SideOption>& options);

}  // namespace oscar
