// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates bits to each KV head on one side (keys or values) of a layer. In addition to options
// with the same whole number of bits for all heads, it offers mixed options, whose heads have
// different bits, chosen by marginal damage (bit_allocation.h). The plan for all layers only
// chooses among these options, so the mean bits of a side change in steps of a half.
#pragma once

#include <span>
#include <vector>

#include "calib/choose/choice.h"

namespace oscar {

// Mean bits of the mixed options.
inline constexpr double kMixedBits[] = {2.5, 3, 3.5};

// Adds mixed options to `options`, which have ascending whole bits, head_score and head_check. Adds
// at most one for each of kMixedBits below the bits of the last option. If an option gives all
// heads the same bits, a mixed option with this mean replaces it only if it is better by
// kWorthwhile on the choosing rows and no worse on the judging rows.
// `in_windows` [options][windows][num_kv_heads] holds window scores of keys. It is empty for
// values, whose damage is proportional to the square of their score.
void AddHeadBits(std::span<const std::vector<std::vector<double>>> in_windows,
                 std::vector<SideOption>& options);

}  // namespace oscar
