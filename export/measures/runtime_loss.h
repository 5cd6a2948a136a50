// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The member `ideal` of an arm that simulates a serving runtime: which arm it is meant to be, and
// by how much it differs. The differences stand in the record, since the page prints and
// never computes; CheckReport holds them against both arms.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// {"arm": the ideal's name, and runtime - ideal of every number that both have}.
Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm);

}  // namespace oscar
