// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a report proves what a zoo asks for: rotations that were validated, and a gate that they
// pass. Trap: a stored verdict is never believed; the gate is evaluated again on the recorded
// measurements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

struct ValidationCheck {
  // Why the artifact may not be published, each with what to run; empty if it may.
  std::vector<std::string> problems;
  // {"source","data","headline_arm","metrics":{name: value},"gate"?: {"text","arm","passed"}}; what
  // an entry repeats of the report. Empty where there is no validation.
  Json summary = Json::object();
  Json gates = Json::array();  // EvaluateGate of the report's own gate and of `extra_gate`
};

// `report`: report.json; `rotations`: digest of the artifact's rotations; `config_sha256`: of the
// model's config.json by the manifest, or ""; `extra_gate`: evaluated on the headline arm, or "".
// Throws InputError naming `what` if the report is not by its schema or contradicts itself,
// UsageError if `extra_gate` cannot be parsed.
ValidationCheck CheckValidation(const Json& report, const FileDigest& rotations,
                                const std::string& config_sha256, std::string_view extra_gate,
                                std::string_view what);

}  // namespace oscar
