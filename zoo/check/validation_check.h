// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that a report proves what a zoo requires: these rotations were validated, the validation
// is of record (export/report/of_record.h), its numbers agree, and they pass a gate. A stored
// verdict is never trusted; the gate is evaluated again on the recorded measurements. These may be
// made up, which only repeated measurements reveal (remeasure.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

// A publisher's demands on a report, beyond the report's own gate.
struct ValidationDemands {
  std::string gate = {};  // a gate for the headline arm, or ""
  bool ungated = false;   // whether a report without any gate is accepted
};

struct ValidationProblem {
  const char* code;  // a code of lint_codes.md
  std::string text;  // includes the command that fixes it
};

struct ValidationCheck {
  std::vector<ValidationProblem> problems;  // reasons not to publish; empty if there are none
  // {"source","headline_arm","metrics":{name: value},"bits_per_element"?,"gate"?:
  // {"text","arm","passed"},"ungated"?: true}: the part of the report that an entry repeats, all
  // about the headline arm. Empty if there is no validation.
  Json summary = Json::object();
  Json gates = Json::array();  // results of EvaluateGate for the report's gate and the demanded one
};

// Checks the validation in `report` (report.json) of the artifact with this `manifest`.
// `rotations`: digest of its rotations. Throws InputError naming `what` if the report violates its
// schema or contradicts itself, UsageError if the demanded gate cannot be parsed.
ValidationCheck CheckValidation(const Json& report, const Json& manifest,
                                const FileDigest& rotations, const ValidationDemands& demands,
                                std::string_view what);

}  // namespace oscar
