// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes report.json as oscar-calibrate does: the measurements of one calibration, layer by layer.
// The format is export/report/schema.md; report_page.h makes the page from it.
#pragma once

#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"
#include "export/report/report_page.h"  // ReportPage

namespace oscar {

// The numbers of one layer without its matrices.
Json LayerReport(const LayerResult& layer);
Json ArmReport(const ArmResult& arm);  // a member of the layer's "arms"

// `header`: provenance shown with the numbers (model, data, held-out rule, windows); `layers`: from
// LayerReport, in order. Adds the summary: mean over layers of every arm, worst invariants.
Json MakeReport(const Json& header, const std::vector<Json>& layers);

// The same table for a terminal: a row per layer, a mean row last.
struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
ReportTable SummaryTable(const Json& report);
// Lists each runtime's choice (serving.runtimes), its KL, and the command that writes it from
// `artifact`; without that column if `artifact` is empty. No rows if there are no automatic
// choices.
ReportTable RuntimesTable(const Json& serving, const std::string& artifact);
// Lists the choices of `any` at each budget (serving.budgets) likewise. No rows without budgets.
ReportTable BudgetsTable(const Json& serving, const std::string& artifact);
// "clip ratio K 0.92, V 0.90; ...": the exported ratios, then OSCAR's own. They are one for all
// layers if the choice is for a runtime that has one, else those in its files.
std::string ClipText(const Json& serving);

}  // namespace oscar
