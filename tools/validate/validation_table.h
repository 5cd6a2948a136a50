// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints a validation on a terminal: a table of arms, the recall tasks, and the gate.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// `validation`: the member of report.json. One row per arm, all numbers.
std::string RenderValidation(const Json& validation);
// A table of the arms that matter to a reader who does not know them, each described in words.
std::string RenderSummary(const Json& validation);

// Returns the JSON of --json: the headline arm, its gate, and the numbers above of every arm.
Json ValidationSummary(const Json& validation);

// Prints --methods help: every method, and the arm that uses it as its authors do.
std::string RenderMethods();

}  // namespace oscar
