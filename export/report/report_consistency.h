// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that the numbers of a validation can come from one run, because many are means, maxima and
// ratios of others. A report that passes is consistent, but not proven true. If someone edits all
// numbers consistently, only another measurement reveals it.
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
