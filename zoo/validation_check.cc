// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See validation_check.h.
#include "zoo/validation_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "export/evaluate/gate.h"
#include "export/report/report_schema.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr std::string_view kRun = "run oscar-validate ARTIFACT --model MODEL --gate '...'";

// The arm called `name`. Throws InputError.
const Json& ArmNamed(const Json& validation, const std::string& name, std::string_view what) {
  const Json& arms = JsonMember(validation, "arms", what);
  if (!arms.is_array()) throw InputError(fmt::format("{}: 'arms' is not a list", what));
  for (const Json& arm : arms) {
    if (JsonString(arm, "name", what) == name) return arm;
  }
  throw InputError(fmt::format("{}: has no arm {}", what, Quoted(name)));
}

// What the arm must be for a gate on it to say anything about these rotations.
void CheckArmIsOurs(const Json& arm, std::string_view what, std::vector<std::string>* problems) {
  const std::string name = JsonString(arm, "name", what);
  const bool ours = JsonString(arm, "method", what).starts_with("oscar");
  if (!ours || JsonBool(arm, "null_control", false, what)) {
    problems->push_back(
        fmt::format("the arm {} does not use the artifact's rotations, so its numbers say nothing "
                    "about them; {} with an oscar arm",
                    Quoted(name), kRun));
  }
}

std::string FailedChecks(const Json& gate) {
  std::string text;
  for (const Json& check : gate.at("checks")) {
    if (check.at("passed") == true) continue;
    text += fmt::format("{}{} is {}, expected {} {}", text.empty() ? "" : ", ",
                        check.at("metric").get<std::string>(),
                        check.contains("value") ? check.at("value").dump() : "not measured",
                        check.at("op").get<std::string>(), check.at("limit").dump());
  }
  return text;
}

void AddGate(const Gate& gate, const Json& arm, std::string_view whose, ValidationCheck* out) {
  const GateResult result = EvaluateGate(gate, arm);
  out->gates.push_back(result.json);
  if (result.passed) return;
  out->problems.push_back(fmt::format(
      "{} fails on arm {}: {}; calibrate better, or choose limits that the use allows "
      "and {}",
      whose, Quoted(arm.at("name").get<std::string>()), FailedChecks(result.json), kRun));
}

// A gate that a report carries: what cannot be parsed is bad input, not bad usage.
Gate StoredGate(const std::string& text, const std::string& where) {
  try {
    return ParseGate(text);
  } catch (const UsageError& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

// Every metric a gate may name that the arm has.
Json Metrics(const Json& arm) {
  Json metrics = Json::object();
  for (const GateMetric& metric : GateMetrics()) {
    const Json* value = &arm;
    std::string_view path = metric.member;
    while (value != nullptr && !path.empty()) {
      const std::string key(path.substr(0, path.find('.')));
      path.remove_prefix(std::min(path.size(), key.size() + 1));
      value = value->is_object() && value->contains(key) ? &value->at(key) : nullptr;
    }
    if (value != nullptr && value->is_number()) metrics[std::string(metric.name)] = *value;
  }
  return metrics;
}

void CheckRotations(const Json& validation, const FileDigest& rotations,
                    const std::string& config_sha256, const std::string& where,
                    std::vector<std::string>* problems) {
  const FileDigest validated =
      DigestFromJson(JsonMember(validation, "rotations", where), where + ".rotations");
  if (validated != rotations) {
    problems->push_back(
        fmt::format("the validation is of other rotations ({}) than the artifact's ({}); {}",
                    validated.sha256, rotations.sha256, kRun));
  }
  if (!validation.contains("model")) return;
  const std::string config = JsonString(validation.at("model"), "config_sha256", "", where);
  if (!config.empty() && !config_sha256.empty() && config != config_sha256) {
    problems->push_back(fmt::format(
        "validated on a model with config.json {}, calibrated on one with {}; {} with the model "
        "it was calibrated on",
        Escaped(config), Escaped(config_sha256), kRun));
  }
}

}  // namespace

ValidationCheck CheckValidation(const Json& report, const FileDigest& rotations,
                                const std::string& config_sha256, std::string_view extra_gate,
                                std::string_view what) {
  ValidationCheck out;
  const Gate extra = extra_gate.empty() ? Gate{} : ParseGate(extra_gate);
  if (!report.is_object()) throw InputError(fmt::format("{}: expected an object", what));
  if (!report.contains("validation")) {
    CheckReport(report, what);
    out.problems.push_back(fmt::format("the artifact was never validated; {}", kRun));
    return out;
  }
  const std::string where = fmt::format("{}: validation", what);
  const Json& validation = report.at("validation");
  CheckRotations(validation, rotations, config_sha256, where, &out.problems);
  const std::string headline_name = JsonString(validation, "headline_arm", where);
  const Json& headline = ArmNamed(validation, headline_name, where);
  out.summary = {{"source", JsonString(validation, "source", where)},
                 {"headline_arm", headline_name},
                 {"metrics", Metrics(headline)}};
  if (validation.contains("gate")) {
    const Json& stored = validation.at("gate");
    const Json& arm = ArmNamed(validation, JsonString(stored, "arm", where), where);
    CheckArmIsOurs(arm, where, &out.problems);
    const std::string text = JsonString(stored, "text", where);
    AddGate(StoredGate(text, where), arm, "the report's gate", &out);
    out.summary["gate"] = {
        {"text", text}, {"arm", arm.at("name")}, {"passed", out.gates.back().at("passed")}};
  }
  if (!extra_gate.empty()) {
    CheckArmIsOurs(headline, where, &out.problems);
    AddGate(extra, headline, "--gate", &out);
  }
  // After the gates: one whose stored verdict is false is a failed gate first, and a report that
  // contradicts itself second.
  if (out.problems.empty()) {
    CheckReport(report, what);
    if (validation.contains("gate")) CheckStoredGate(validation, where);
  }
  return out;
}

}  // namespace oscar
