// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation for a terminal: a table of arms, then what recall is about, and the gate.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// `validation`: the member of report.json. One row per arm, all numbers.
std::string RenderValidation(const Json& validation);
// The arms that a reader who knows none of them compares, each by what it is.
std::string RenderSummary(const Json& validation);

// What --json prints: the headline arm, its gate, and the numbers above of every arm.
Json ValidationSummary(const Json& validation);

// What --methods help prints: every method, and the arm that it is as its authors use it.
std::string RenderMethods();

}  // namespace oscar
