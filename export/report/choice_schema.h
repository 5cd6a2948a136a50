// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What oscar-calibrate --auto chose, as members of a report: `auto` of a layer, and of `serving`.
// Only report_schema.cc uses it. Both are open; what stands here is what the page shows.
#pragma once

#include "export/report/schema_check.h"

namespace oscar {

// The bits that were chosen have an option.
void CheckLayerChoice(const Spot& spot);
void CheckServingChoice(const Spot& spot);
void CheckServedRuntime(const Spot& spot);
void CheckBudget(const Spot& spot);
void CheckCacheTypes(const Spot& spot);

}  // namespace oscar
