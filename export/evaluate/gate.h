// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The pass/fail rule of oscar-validate: "kl<=0.05,ppl_ratio<=1.02", evaluated on one arm of
// report.json. A metric that the arm does not have fails its check; a gate never passes for
// want of a measurement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/measures/report.h"
#include "export/measures/table.h"

namespace oscar {

using measures::Gate;
using measures::GateCheck;

inline std::vector<Measure> GateMetrics() { return Measures(kGate); }

// `text` without white space, and what it checks. Throws UsageError naming the nearest metric, or
// what was expected where.
Gate ParseGate(std::string_view text);

// The gate with its arm, its values and its verdict: the member "gate" of "validation". `arm` is an
// element of "arms" (schema: report.json version 2), through ArmOfVerdict where the report has two
// texts. Throws InputError if it has no name, or if a metric is there but is not a finite number.
Gate EvaluateGate(Gate gate, const Json& arm);

// What arms will be measured on, beside local errors.
struct MeasuredParts {
  bool predictions = false, recall = false, tool_calls = false, reasoning = false;
};
// Throws UsageError for a check of anything else.
void CheckMeasured(const Gate& gate, const MeasuredParts& parts);

// Evaluates the gate that a finished report carries once more, from its own text and its own arms.
// Throws InputError naming `what` if there is none, or if the stored verdict differs.
Gate CheckStoredGate(const Json& validation, std::string_view what);

}  // namespace oscar
