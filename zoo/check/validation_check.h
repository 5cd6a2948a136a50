// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a report proves what a zoo asks for: that these rotations were validated, that the
// validation is of record (export/report/of_record.h), that its numbers agree, and that they pass a
// gate. A stored verdict is never believed; the gate is evaluated again on the recorded
// measurements. Those are only as true as whoever wrote them: measuring again tells (remeasure.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

// What is asked of a report besides.
struct ValidationDemands {
  std::string gate = {};  // evaluated on the headline arm, or ""
  bool ungated = false;   // it may be without any gate
};

struct ValidationProblem {
  const char* code;  // of lint_codes.md
  std::string text;  // with what to run
};

struct ValidationCheck {
  std::vector<ValidationProblem> problems;  // why it may not be published; empty if it may
  // {"source","headline_arm","metrics":{name: value},"bits_per_element"?,"gate"?:
  // {"text","arm","passed"},"ungated"?: true}; what an entry repeats of the report, all of it the
  // headline's. Empty where there is no validation.
  Json summary = Json::object();
  Json gates = Json::array();  // EvaluateGate of the report's own gate and of the demanded
};

// `report`: report.json; `manifest`: of the artifact; `rotations`: digest of its rotations. Throws
// InputError naming `what` if the report is not by its schema or contradicts itself, UsageError if
// the demanded gate cannot be parsed.
ValidationCheck CheckValidation(const Json& report, const Json& manifest,
                                const FileDigest& rotations, const ValidationDemands& demands,
                                std::string_view what);

}  // namespace oscar
