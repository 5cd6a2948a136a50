// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of codes, and findings as text and JSON. Users' scripts depend on the codes.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "zoo/lint/lint.h"

namespace oscar {
namespace {

constexpr LintRule kRules[] = {
    {"OZ001", "unreadable", Severity::kError,
     "not written by torch.save, damaged, or holds more than data"},
    {"OZ002", "unknown-content", Severity::kError, "opens, but holds nothing known"},
    {"OZ003", "unknown-version", Severity::kError, "unknown format_version"},
    {"OZ004", "malformed", Severity::kError, "layers, ids, shapes or fields do not fit the format"},
    {"OZ005", "name-contradicts-content", Severity::kError,
     "the file name indicates another side, grouping or format than the content"},
    {"OZ006", "unusual-name", Severity::kWarning, "a name that no consumer looks for"},
    {"OZ007", "unpaired", Severity::kError, "a K file without its V file, or vice versa"},
    {"OZ008", "shared-and-per-head", Severity::kError,
     "shared and per-head rotations in one folder"},
    {"OZ009", "pair-mismatch", Severity::kError,
     "K and V differ in geometry, run, model or prompts"},
    {"OZ010", "missing-layer", Severity::kError,
     "a layer is missing that the partner or the model has"},
    {"OZ011", "extra-layer", Severity::kError, "a layer that the model does not have"},
    {"OZ012", "layer-gap", Severity::kWarning,
     "layer ids are neither contiguous nor evenly spaced; give --model to check them"},
    {"OZ013", "not-orthogonal", Severity::kError, "a rotation is not orthogonal"},
    {"OZ014", "not-finite", Severity::kError, "NaN or infinity"},
    {"OZ015", "degenerate", Severity::kError,
     "a covariance has a rank far below the head's dimension, so it was fitted to too few tokens"},
    {"OZ016", "few-tokens", Severity::kWarning,
     "a covariance does not have full rank, or has fewer tokens than 20 times the dimension"},
    {"OZ017", "heads-disagree", Severity::kWarning,
     "one rotation is used for KV heads that need different ones; use the per-head rotations"},
    {"OZ018", "model-mismatch", Severity::kError, "heads or dimensions differ from the model's"},
    {"OZ019", "negative-eigenvalue", Severity::kError,
     "a covariance cannot have negative eigenvalues"},
    {"OZ020", "artifact-damaged", Severity::kError,
     "digests, schema, geometry or report are wrong, or a rotation does not follow from its "
     "moments"},
    {"OZ021", "not-validated", Severity::kWarning,
     "the report has no validation; run oscar-validate"},
    {"OZ022", "gate-failed", Severity::kError,
     "the recorded measurements fail the report's gate, or belong to other rotations"},
    {"OZ023", "data-free", Severity::kNote, "identity or Hadamard: nothing was calibrated"},
    {"OZ024", "zoo-damaged", Severity::kError, "a bad entry, blob or pointer in a zoo"},
    {"OZ025", "not-of-record", Severity::kWarning,
     "the report is a comparison, not a validation of record"},
    {"OZ026", "no-gate", Severity::kNote, "the report has no gate"},
};

std::string Where(const LintPlace& place) {
  std::string text = Escaped(place.file.string());
  if (place.layer_id) text += fmt::format(": layer {}", *place.layer_id);
  if (!place.side.empty()) text += fmt::format("{} {}", place.layer_id ? "," : ":", place.side);
  if (place.head) text += fmt::format(", head {}", *place.head);
  return text;
}

}  // namespace

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  OSCAR_CHECK(false);
}

std::span<const LintRule> LintRules() { return kRules; }

const LintRule& LintRuleNamed(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kRules), std::end(kRules),
                                         [&](const LintRule& rule) { return rule.name == name; });
  OSCAR_CHECK(found != std::end(kRules));
  return *found;
}

bool LintReport::has_errors() const {
  return std::any_of(findings.begin(), findings.end(), [](const LintFinding& finding) {
    return finding.rule->severity == Severity::kError;
  });
}

std::string LintLine(const LintFinding& finding) {
  std::string line =
      fmt::format("{} {} {}: {}: {}", SeverityName(finding.rule->severity), finding.rule->code,
                  finding.rule->name, Where(finding.place), Escaped(finding.found, 2000));
  if (!finding.expected.empty()) line += fmt::format("; expected {}", finding.expected);
  return line;
}

Json LintToJson(const LintReport& report) {
  Json findings = Json::array();
  Json counts = {{"error", 0}, {"warning", 0}, {"note", 0}};
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  for (const LintFinding& finding : report.findings) {
    const std::string severity(SeverityName(finding.rule->severity));
    counts[severity] = counts[severity].get<int>() + 1;
    findings.push_back({{"code", finding.rule->code},
                        {"name", finding.rule->name},
                        {"severity", severity},
                        {"file", Escaped(finding.place.file.string(), 4096)},
                        {"layer", number(finding.place.layer_id)},
                        {"head", number(finding.place.head)},
                        {"side", finding.place.side},
                        {"found", Escaped(finding.found, 2000)},
                        {"expected", finding.expected}});
  }
  return {{"files", report.files}, {"counts", counts}, {"findings", findings}};
}

}  // namespace oscar
