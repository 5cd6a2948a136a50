// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The effects of the keys' error and of the values' error on the output: P̂V̂ − PV = (P̂ − P)V + P̂(V̂ −
// V), an identity (arXiv 2608.02691, equation 8).
#include <fmt/format.h>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/row_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr const char* kErrorKeys[] = {"logit_rel_error", "logit_mse", "k_rel_error", "k_mse",
                                      "v_rel_error",     "v_mse",     "k_term",      "v_term"};

std::string SplitTable(const std::vector<ArmLook>& arms) {
  std::vector<TableRow> rows;
  for (const ArmLook& look : arms) {
    TableRow row{{ArmNameHtml(look)}, ArmRowCss(look)};
    for (const char* key : kErrorKeys)
      row.cells.push_back(Value(look.arm["local"][key], Format::kError));
    rows.push_back(std::move(row));
  }
  return Table("Errors of keys and values",
               {"configuration", "logits, relative", "logits, mean square", "keys, relative",
                "keys, mean square", "values, relative", "values, mean square", "keys' term",
                "values' term"},
               rows);
}

}  // namespace

std::string SplitSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  RowChart chart;
  chart.id = "split";
  chart.title = "The two terms of the output error";
  chart.note = "Solid upper bar: keys. Pale lower bar: values.";
  chart.description =
      "Two bars for each configuration: the output error caused by the keys and the one caused by "
      "the values, relative to the output.";
  chart.x_label = "relative to the output’s norm";
  for (const ArmLook& look : arms) {
    const Record local = look.arm["local"];
    chart.rows.push_back(
        {look.label,
         look.css + (look.headline ? " strong" : ""),
         fmt::format("K {} · V {}", FormatNumber(local["k_term"].Number(), Format::kError),
                     FormatNumber(local["v_term"].Number(), Format::kError)),
         {{ChartMark::kBar, local["k_term"]}, {ChartMark::kThinBar, local["v_term"]}}});
  }
  return Note(
             "The output’s error splits exactly into P̂V̂ − PV = (P̂ − P)V + P̂(V̂ − V): the effect of "
             "wrong keys on the attention weights, and the error that wrong values add.") +
         FigureRow(RenderRowChart(chart)) + SplitTable(arms);
}

}  // namespace oscar
