// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints a validation on a terminal: a table of arms, the recall tasks, and the gate.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// `validation`: the member of report.json. Shows one row per arm with all numbers.
std::string RenderValidation(const Json& validation);
// Shows only the most important arms, with descriptions for readers who do not know them.
std::string RenderSummary(const Json& validation);

// Returns the output of --json: the headline arm, its gate, and the numbers of every arm.
Json ValidationSummary(const Json& validation);

// Returns the text of --methods help: every method, and the arm that uses it as its authors do.
std::string RenderMethods();

}  // namespace oscar
