// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes oscar-calibrate's report.json: the measurements of a calibration, layer by layer.
// export/report/schema.md defines the format; report_page.h makes the page from it.
#pragma once

#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"
#include "export/report/report_page.h"  // ReportPage

namespace oscar {

// Returns the numbers of one layer, without matrices.
Json LayerReport(const LayerResult& layer);
Json ArmReport(const ArmResult& arm);  // a member of the layer's "arms"

// `header`: provenance shown with the numbers (model, data, held-out rule, windows). `layers`: from
// LayerReport, in order. Adds the summary: means of every arm over layers, worst invariants.
Json MakeReport(const Json& header, const std::vector<Json>& layers);

// The summary as a table for terminals: a row per layer, then a row of means.
struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
ReportTable SummaryTable(const Json& report);
// Lists each runtime's choice (serving.runtimes), its KL, and the command that writes it from
// `artifact`. If `artifact` is empty, leaves out the commands. No rows without automatic choices.
ReportTable RuntimesTable(const Json& serving, const std::string& artifact);
// Lists the choices of consumer `any` at each budget (serving.budgets) in the same way. No rows
// without budgets.
ReportTable BudgetsTable(const Json& serving, const std::string& artifact);
// Returns "clip ratio K 0.92, V 0.90; ...": the exported ratios, then OSCAR's own. A runtime with
// one ratio for all layers gets that ratio; for others the text names the ratios in its files.
std::string ClipText(const Json& serving);

}  // namespace oscar
