// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the errors that oscar-calibrate measured on its held-out rows, for each arm and layer.
// Errors by head and position exist only for oscar-validate's arms.
#include <fmt/format.h>

#include "export/report/arm_look.h"
#include "export/report/arm_table.h"  // kNoNumber
#include "export/report/html.h"
#include "export/report/line_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr struct {
  const char* heading;
  const char* key;
  bool beyond = false;  // counts only rows that see a quantized key; there may be none
} kErrorColumns[] = {{"attention-KL", "kl_mean_beyond", true},
                     {"largest", "kl_max", true},
                     {"output error", "output_rel_error_beyond", true},
                     {"attention-KL without windows", "kl_mean_no_windows"},
                     {"output error without windows", "output_rel_error_no_windows"}};

std::string ByLayer(const Record& report, const std::vector<CalibrationArm>& arms, const char* key,
                    const char* id, const char* title) {
  LineChart chart;
  chart.id = id;
  chart.title = title;
  chart.description =
      "Attention-KL of each configuration against the layer, with a logarithmic y axis.";
  chart.x_label = "layer";
  chart.y_label = "attention-KL, nats";
  for (const CalibrationArm& arm : arms) {
    ChartSeries series{
        arm.label, arm.line_css + (report["layers"].size() > 16 ? " quiet" : ""), {}};
    series.dots = report["layers"].size() <= 16;
    for (const Record& layer : report["layers"].Items()) {
      if (layer["arms"].Has(arm.name)) {
        series.points.push_back(
            {layer["layer_id"].Number(), layer["arms"][arm.name][key].Number()});
      }
    }
    chart.series.push_back(std::move(series));
  }
  return RenderLineChart(chart);
}

}  // namespace

std::string LayerErrorSection(const Record& report) {
  const Record summary = report["summary"];
  const std::vector<CalibrationArm> arms = LookOfCalibrationArms(summary);
  if (arms.empty()) return {};
  std::vector<std::string> header = {"mean over layers"};
  for (const auto& column : kErrorColumns) header.emplace_back(column.heading);
  header.emplace_back("rows in a layer");
  std::vector<TableRow> rows;
  for (const CalibrationArm& arm : arms) {
    TableRow row{{fmt::format("<span class=\"name\"><span class=\"swatch {}\"></span>{}</span>",
                              arm.css, Html(arm.label))},
                 arm.name == CalibrationHeadline(summary) ? "headline" : ""};
    const Record measured = summary["arms"][arm.name];
    const bool any = measured["rows_beyond"].Number() > 0;
    for (const auto& column : kErrorColumns) {
      row.cells.push_back(column.beyond && !any ? kNoNumber
                                                : Value(measured[column.key], Format::kError));
    }
    row.cells.push_back(Value(measured["rows_beyond"], Format::kCount));
    rows.push_back(std::move(row));
  }
  return Note(
             "Measured while fitting, on rows of the calibration text that were held out of the "
             "fit and that see a quantized key. The first and the most recent tokens are kept in "
             "16 bits, except under “without windows”.") +
         FigureRow(ByLayer(report, arms, "kl_mean_beyond", "layer-kl", "With windows") +
                   ByLayer(report, arms, "kl_mean_no_windows", "layer-kl-all", "Without windows")) +
         Table("Configurations of the calibration", header, rows);
}

}  // namespace oscar
