// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that the numbers of a validation agree: many are means, maxima or ratios of others. A
// report that passes is consistent, but not proven true. If someone edits all numbers consistently,
// only another measurement reveals it.
#pragma once

#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// Throws InputError naming `what`, the arm, the member, its value and the value that follows from
// other numbers. `report` must have passed CheckReport. Checks:
// - means over heads, layers, positions, lengths and tasks, and the worst head;
// - perplexity relative to that of the reference (the arm with an exact cache);
// - that the reference has no error, and that all arms have the same counts;
// - the order of quantiles;
// - means of the calibration over layers.
void CheckNumbersAgree(const Json& report, std::string_view what);

}  // namespace oscar
