// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The pass/fail rule of oscar-validate, such as "kl<=0.05,ppl_ratio<=1.02". It is evaluated on one
// arm (a measured configuration) of report.json. A metric that the arm lacks fails its check, so a
// missing measurement never passes a gate.
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

// Parses `text`, ignoring white space. Throws UsageError that names the nearest metric, or says
// what was expected and where.
Gate ParseGate(std::string_view text);

// Returns the gate with its arm, values and verdict, which is the member "gate" of "validation".
// `arm` is an element of "arms" (export/report/schema.md). If the report has two texts, it must
// come from ArmOfVerdict. Throws InputError if the arm has no name, or if a metric is not a finite
// number.
Gate EvaluateGate(Gate gate, const Json& arm);

// The measurements that a run makes in addition to local errors, which it always measures.
struct MeasuredParts {
  bool predictions = false, recall = false, tool_calls = false, reasoning = false;
};
// Throws UsageError if the gate checks something that the run does not measure.
void CheckMeasured(const Gate& gate, const MeasuredParts& parts);

// Evaluates the gate of a finished report again, from the report's gate text and arms. Throws
// InputError naming `what` if there is no gate, or if its stored verdict differs.
Gate CheckStoredGate(const Json& validation, std::string_view what);

}  // namespace oscar
