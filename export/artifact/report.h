// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// report.json: what one calibration measured, layer by layer, as a record; and report.html, a pure
// function of it.
#pragma once

#include <string>
#include <vector>

#include "calib/layer_result.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Numbers of one layer without its matrices.
Json LayerReport(const LayerResult& layer);

// `header`: provenance shown with the numbers (model, data, held-out rule, windows); `layers`: of
// LayerReport, in order. Adds the summary: mean over layers of every arm, worst invariants.
Json MakeReport(const Json& header, const std::vector<Json>& layers);

// One page, no script, no network; legible in light and dark, at phone width and printed.
std::string ReportPage(const Json& report);

// The same table for a terminal: a row per layer, a mean row last.
struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
ReportTable SummaryTable(const Json& report);

}  // namespace oscar
