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
     "not a file that torch.save writes, damaged, or with something in it that is not data"},
    {"OZ002", "unknown-content", Severity::kError, "opens, but holds nothing that is known"},
    {"OZ003", "unknown-version", Severity::kError, "format_version is none that is known"},
    {"OZ004", "malformed", Severity::kError,
     "a known format whose layers, ids, shapes or fields do not fit it"},
    {"OZ005", "name-contradicts-content", Severity::kError,
     "the name says another side, grouping or format than the content"},
    {"OZ006", "unusual-name", Severity::kWarning, "a name that no consumer looks for"},
    {"OZ007", "unpaired", Severity::kError, "a K file without its V file, or the reverse"},
    {"OZ008", "shared-and-per-head", Severity::kError,
     "shared and per-head rotations in one folder: a server picks whichever it is told"},
    {"OZ009", "pair-mismatch", Severity::kError,
     "K and V are not of one calibration: other geometry, run, model or prompts"},
    {"OZ010", "missing-layer", Severity::kError, "a layer that the partner or the model has"},
    {"OZ011", "extra-layer", Severity::kError, "a layer that the model does not have"},
    {"OZ012", "layer-gap", Severity::kWarning,
     "layer ids that are neither contiguous nor evenly spaced; name the model to be sure"},
    {"OZ013", "not-orthogonal", Severity::kError, "a rotation that is none"},
    {"OZ014", "not-finite", Severity::kError, "NaN or infinity"},
    {"OZ015", "degenerate", Severity::kError,
     "a covariance of rank far below the head's dimension: fitted to too few tokens"},
    {"OZ016", "few-tokens", Severity::kWarning,
     "a covariance of incomplete rank, or fewer tokens than 20 times the dimension"},
    {"OZ017", "heads-disagree", Severity::kWarning,
     "one rotation for KV heads that need different ones; use the per-head rotations"},
    {"OZ018", "model-mismatch", Severity::kError, "heads or dimensions unlike the model's"},
    {"OZ019", "negative-eigenvalue", Severity::kError, "no covariance has one"},
    {"OZ020", "artifact-damaged", Severity::kError,
     "digests, schema, geometry or report of an artifact do not hold, or a rotation is not that of "
     "its own moments"},
    {"OZ021", "not-validated", Severity::kWarning, "an artifact whose report has no validation"},
    {"OZ022", "gate-failed", Severity::kError,
     "the recorded measurements fail the report's gate, or are of other rotations"},
    {"OZ023", "data-free", Severity::kNote, "identity or Hadamard: nothing was calibrated"},
    {"OZ024", "zoo-damaged", Severity::kError, "an entry, blob or pointer of a zoo does not hold"},
    {"OZ025", "not-of-record", Severity::kWarning,
     "the report is a comparison: its headline is not the artifact's own choice as it is served"},
    {"OZ026", "no-gate", Severity::kNote, "the report was held against no gate"},
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
