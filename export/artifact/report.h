// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes oscar-calibrate's report.json, which holds a calibration's measurements by layer.
// export/report/schema.md defines the format, and report_page.h makes the HTML page from it.
#pragma once

#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"
#include "export/report/report_page.h"  // ReportPage

namespace oscar {

// Returns a layer's numbers, without matrices.
Json LayerReport(const LayerResult& layer);
Json ArmReport(const ArmResult& arm);  // a member of the layer's "arms"

// `header` is the provenance (model, data, held-out rule, windows). `layers` come from LayerReport,
// in order. Adds a summary: each arm's means over layers, and the worst invariants.
Json MakeReport(const Json& header, const std::vector<Json>& layers);

// The summary as a table for terminals: a row per layer, then a row of means.
struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
ReportTable SummaryTable(const Json& report);
// Lists each runtime's choice (serving.runtimes), its KL, and the command that exports it from
// `artifact`. If `artifact` is empty, the commands are left out. There are no rows without
// automatic choices.
ReportTable RuntimesTable(const Json& serving, const std::string& artifact);
// Lists in the same way the choices that the runtime `any` has at each bit budget
// (serving.budgets).
ReportTable BudgetsTable(const Json& serving, const std::string& artifact);
// Returns text like "clip ratio K 0.92, V 0.90; ...": first the ratios of the headline choice, if
// there is one, then those for OSCAR's own rotations. If the headline's runtime takes a ratio for
// each layer, the text refers to the exported files instead.
std::string ClipText(const Json& serving);

}  // namespace oscar
