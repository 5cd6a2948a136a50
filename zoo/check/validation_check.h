// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks what a zoo requires of a report: that these rotations were validated, that the validation
// is of record (export/report/of_record.h), and that its numbers are consistent and pass a gate. A
// stored verdict is not trusted: the gate is evaluated again on the recorded measurements. Only
// repeated measurements (remeasure.h) can reveal that these were made up.
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
  // The part of the report that an entry repeats, about the headline arm; empty without a
  // validation: {"source", "headline_arm", "metrics": {name: value}, "bits_per_element"?, "gate"?:
  // {"text", "arm", "passed"}, "ungated"?: true}.
  Json summary = Json::object();
  Json gates = Json::array();  // results of EvaluateGate for the report's and the demanded gate
};

// Checks the validation in `report` (report.json) of an artifact. `manifest` and `rotations`: the
// artifact's manifest, and the digest of its rotations file. Throws InputError naming `what` if the
// report violates its schema or contradicts itself, UsageError if the demanded gate cannot be
// parsed.
ValidationCheck CheckValidation(const Json& report, const Json& manifest,
                                const FileDigest& rotations, const ValidationDemands& demands,
                                std::string_view what);

}  // namespace oscar
