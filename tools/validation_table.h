// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation for a terminal: one row per arm, then the gate.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// `validation`: the member of report.json.
std::string RenderValidation(const Json& validation);

// What --json prints: the headline arm, its gate, and the numbers above of every arm.
Json ValidationSummary(const Json& validation);

// What --methods help prints: every method, and the arm that it is as its authors use it.
std::string RenderMethods();

}  // namespace oscar
