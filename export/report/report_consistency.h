// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the numbers of a validation can all come from one run: many of them are means, maxima and
// ratios of others. A report that passes is consistent, not true; whoever edits one number
// has to edit what follows from it, and whoever edits all of it is found by measuring again alone.
#pragma once

#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// `report` must have passed CheckReport. Throws InputError naming `what`, arm, member, its value
// and the value that follows from others. Checks means over heads, layers, positions, lengths and
// tasks, the worst head, perplexity over the reference's, counts that all arms share, the order of
// quantiles, the exactness of the reference, and the calibration's means over layers.
void CheckNumbersAgree(const Json& report, std::string_view what);

}  // namespace oscar
