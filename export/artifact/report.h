// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// report.json as oscar-calibrate writes it: what one calibration measured, layer by layer. The
// format is export/report/schema.md; the page made from it is report_page.h.
#pragma once

#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"
#include "export/report/report_page.h"  // ReportPage

namespace oscar {

// Numbers of one layer without its matrices.
Json LayerReport(const LayerResult& layer);
Json ArmReport(const ArmResult& arm);  // a member of its "arms"

// `header`: provenance shown with the numbers (model, data, held-out rule, windows); `layers`: of
// LayerReport, in order. Adds the summary: mean over layers of every arm, worst invariants.
Json MakeReport(const Json& header, const std::vector<Json>& layers);

// The same table for a terminal: a row per layer, a mean row last.
struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
ReportTable SummaryTable(const Json& report);
// Lists what every runtime gets (serving.runtimes): its choice, at what KL, and the command that
// writes it from `artifact`; without that column if `artifact` is empty. No rows without automatic
// choices.
ReportTable RuntimesTable(const Json& serving, const std::string& artifact);
// Lists likewise what `any` gets at each budget (serving.budgets). No rows without budgets.
ReportTable BudgetsTable(const Json& serving, const std::string& artifact);
// "clip ratio K 0.92, V 0.90; ...": the ratios that are exported, one for all layers where the
// choice is for a runtime that has one, else those in its files; and OSCAR's own.
std::string ClipText(const Json& serving);

}  // namespace oscar
