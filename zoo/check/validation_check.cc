// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/check/validation_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "export/evaluate/gate.h"
#include "export/report/of_record.h"
#include "export/report/report_consistency.h"
#include "export/report/report_schema.h"
#include "export/report/verdict_text.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kRunFirst = "run oscar-validate ARTIFACT --model MODEL --gate '...'";
constexpr std::string_view kRun =  // used if there already is a validation of record
    "run oscar-validate ARTIFACT --model MODEL --gate '...' --replace";

// Returns the arm called `name`. Throws InputError.
const Json& ArmNamed(const Json& validation, const std::string& name, std::string_view what) {
  const Json& arms = JsonMember(validation, "arms", what);
  if (!arms.is_array()) throw InputError(fmt::format("{}: 'arms' is not a list", what));
  for (const Json& arm : arms) {
    if (JsonString(arm, "name", what) == name) return arm;
  }
  throw InputError(fmt::format("{}: has no configuration {}", what, Quoted(name)));
}

std::string FailedChecks(const Gate& gate) {
  std::string text;
  for (const GateCheck& check : gate.checks) {
    if (check.passed) continue;
    text += fmt::format("{}{} is {}, expected {} {}", text.empty() ? "" : ", ", check.metric,
                        check.value ? Json(*check.value).dump() : "not measured", check.op,
                        Json(check.limit).dump());
  }
  return text;
}

void AddGate(const Gate& gate, const Json& arm, std::string_view whose, ValidationCheck* out) {
  const Gate result = EvaluateGate(gate, arm);
  out->gates.push_back(result);
  if (result.passed) return;
  out->problems.push_back(
      {"gate-failed",
       fmt::format(
           "{} fails for configuration {}: {}; calibrate better, or choose looser limits and {}",
           whose, Quoted(result.arm), FailedChecks(result), kRun)});
}

// Parses the gate that a report holds. A parse error is bad input, not bad usage.
Gate StoredGate(const std::string& text, const std::string& where) {
  try {
    return ParseGate(text);
  } catch (const UsageError& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

// Returns every metric of the arm that a gate may name.
Json Metrics(const Json& arm) {
  Json metrics = Json::object();
  for (const Measure& metric : GateMetrics()) {
    const Json* value = FindAt(arm, metric.path);
    if (value != nullptr && value->is_number()) metrics[std::string(metric.name)] = *value;
  }
  return metrics;
}

void CheckSubject(const Json& validation, const Json& manifest, const FileDigest& rotations,
                  const std::string& where, std::vector<ValidationProblem>* problems) {
  const FileDigest validated =
      DigestFromJson(JsonMember(validation, "rotations", where), where + ".rotations");
  if (validated != rotations) {
    problems->push_back(
        {"gate-failed",
         fmt::format("the validation measured other rotations ({}) than the artifact's ({}); {}",
                     validated.sha256, rotations.sha256, kRun)});
  }
  const Json nothing = Json::object();
  const Json& ran_on = validation.contains("model") ? validation.at("model") : nothing;
  const Json& model = manifest.contains("model") ? manifest.at("model") : nothing;
  for (const char* member : {"config", "weights_sample"}) {
    if (!ran_on.is_object() || !ran_on.contains(member) || !model.contains(member)) continue;
    if (ran_on.at(member) == model.at(member)) continue;
    problems->push_back(
        {"gate-failed",
         fmt::format("the artifact was validated on another model than it was calibrated on: its "
                     "'{}' is {}, but the manifest has {}; {} with the model it was calibrated on",
                     member, Escaped(ran_on.at(member).dump(), 100),
                     Escaped(model.at(member).dump(), 100), kRun)});
  }
}

}  // namespace

ValidationCheck CheckValidation(const Json& report, const Json& manifest,
                                const FileDigest& rotations, const ValidationDemands& demands,
                                std::string_view what) {
  ValidationCheck out;
  const Gate demanded = demands.gate.empty() ? Gate{} : ParseGate(demands.gate);
  if (!report.is_object()) throw InputError(fmt::format("{}: expected an object", what));
  if (!report.contains("validation")) {
    CheckReport(report, what);
    out.problems.push_back(
        {"not-validated", fmt::format("the artifact was never validated; {}", kRunFirst)});
    return out;
  }
  const std::string where = fmt::format("{}: validation", what);
  const Json& validation = report.at("validation");
  CheckSubject(validation, manifest, rotations, where, &out.problems);
  const std::string headline_name = JsonString(validation, "headline_arm", where);
  const Json& headline = ArmNamed(validation, headline_name, where);
  out.summary = {{"source", JsonString(validation, "source", where)},
                 {"headline_arm", headline_name},
                 {"metrics", Metrics(ArmOfVerdict(validation, headline))}};
  if (const Json::json_pointer bits("/bits_per_element/paper");
      headline.contains(bits) && headline.at(bits).is_number())
    out.summary["bits_per_element"] = headline.at(bits);
  const auto summarize = [&](const Gate& gate) {
    out.summary["gate"] = {
        {"text", gate.text}, {"arm", headline_name}, {"passed", out.gates.back().at("passed")}};
  };
  if (validation.contains("gate")) {
    const Json& stored = validation.at("gate");
    const std::string arm = JsonString(stored, "arm", where);
    if (arm != headline_name) {
      out.problems.push_back(
          {"not-of-record",
           fmt::format("the gate judges configuration {}, but the headline is {}; {}", Quoted(arm),
                       Quoted(headline_name), kRun)});
    }
    const Gate gate = StoredGate(JsonString(stored, "text", where), where);
    AddGate(gate, ArmOfVerdict(validation, ArmNamed(validation, arm, where)), "the report's gate",
            &out);
    summarize(gate);
  }
  if (!demanded.checks.empty()) {
    AddGate(demanded, ArmOfVerdict(validation, headline), "--gate", &out);
    if (!validation.contains("gate")) summarize(demanded);
  }
  if (out.gates.empty()) {
    out.summary["ungated"] = true;
    if (!demands.ungated) {
      out.problems.push_back(
          {"no-gate",
           fmt::format(
               "no gate was passed; give --gate, or --ungated, which the entry then records, or {}",
               kRun)});
    }
  }
  // This check comes after the gates. A false stored verdict is then reported as a failed gate, not
  // as a report that contradicts itself.
  const auto failed = [](const ValidationProblem& problem) {
    return std::string_view(problem.code) == "gate-failed";
  };
  if (std::ranges::any_of(out.problems, failed)) return out;
  CheckReport(report, what);
  for (const std::string& reason : WhyNotOfRecord(FactsOf(validation, where), report, what)) {
    out.problems.push_back(
        {"not-of-record",
         fmt::format("the report is a comparison and not a validation of record: {}; {}", reason,
                     kRun)});
  }
  if (!out.problems.empty()) return out;
  CheckNumbersAgree(report, what);
  if (validation.contains("gate")) CheckStoredGate(validation, where);
  return out;
}

}  // namespace oscar
