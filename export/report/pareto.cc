// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/pareto.h"

#include <fmt/format.h>

#include "export/report/scatter_chart.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

// Returns a label short enough for a chart's edge. Arms of one method differ mostly in windows.
std::string EdgeLabel(const ArmLook& look) {
  return MethodLabel(look.arm["method"].Text()) + (look.windows ? " +w" : "");
}

ScatterPoint Point(const ArmLook& look, const Record& bits, const Record& kl) {
  ScatterPoint point{.x = bits,
                     .y = kl["mean"],
                     .name = look.label,
                     .label = EdgeLabel(look),
                     .css = look.css,
                     .counts = !look.null_control};
  if (kl.Has("interval")) point.interval = kl["interval"];
  return point;
}

ScatterChart Chart(std::string_view id, const char* name, const char* title, const char* y_label) {
  ScatterChart chart;
  chart.id = fmt::format("{}-{}", id, name);
  chart.title = title;
  chart.x_label = "stored bits per element";
  chart.y_label = y_label;
  chart.x_ticks = {2, 2.5, 3, 4, 5, 6, 8, 12, 16};
  chart.description =
      "Every configuration as a point, with bits per element on the horizontal axis and error on "
      "the vertical axis, both logarithmic; the table below has the numbers.";
  return chart;
}

}  // namespace

std::string ParetoCharts(const std::vector<ArmLook>& arms, std::string_view id) {
  ScatterChart attention =
      Chart(id, "attention", "Attention error against stored bits", "attention-KL, nats");
  attention.note =
      "Filled and named: no other configuration has both fewer bits and less error (+w: with "
      "windows). Configurations without any error are not shown.";
  ScatterChart token =
      Chart(id, "token", "Prediction error against stored bits", "next-token KL, nats");
  token.note = "The same comparison with the error of the model’s predictions.";
  for (const ArmLook& look : arms) {
    const Record bits = look.arm["bits_per_element"]["actual"];
    attention.points.push_back(Point(look, bits, look.arm["local"]["kl"]));
    if (look.arm.Has("text"))
      token.points.push_back(Point(look, bits, look.arm["text"]["token_kl"]));
  }
  return FigureRow(RenderScatterChart(attention) + RenderScatterChart(token));
}

std::vector<bool> IsOnFront(const std::vector<ArmLook>& arms) {
  std::vector<std::pair<double, double>> points;
  std::vector<size_t> index;
  for (size_t i = 0; i < arms.size(); ++i) {
    const double bits = arms[i].arm["bits_per_element"]["actual"].Number();
    const double kl = arms[i].arm["local"]["kl"]["mean"].Number();
    if (arms[i].null_control || kl <= 0) continue;
    points.emplace_back(bits, kl);
    index.push_back(i);
  }
  std::vector<bool> on_front(arms.size(), false);
  for (const size_t i : ParetoFront(points)) on_front[index[i]] = true;
  return on_front;
}

}  // namespace oscar
