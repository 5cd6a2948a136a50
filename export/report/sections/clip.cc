// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Charts the held-out error against the clip ratio, with a line per layer. The chart shows whether
// the chosen ratio is at a minimum or on a slope.
#include <fmt/format.h>

#include <vector>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/line_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

std::string Curves(const Record& report, const char* side, const char* serving, const char* title) {
  LineChart chart;
  chart.id = fmt::format("clip-{}", side);
  chart.title = title;
  chart.description = "Held-out quantization error against clip ratio, one line per layer.";
  chart.x_label = "clip ratio";
  chart.y_label = "held-out error / energy";
  const std::vector<Record> layers = report["layers"].Items();
  ChartSeries chosen{"", "sr", {}, "", "", true, false};
  for (size_t i = 0; i < layers.size(); ++i) {
    const Record layer_side = layers[i]["sides"][side];
    if (!layer_side.Has("clip_error") || layer_side["clip_error"].size() == 0) continue;
    const std::vector<Record> errors = layer_side["clip_error"].Items(),
                              ratios = layers[i]["clip_candidates"].Items();
    const bool named = i == 0 || i + 1 == layers.size();
    ChartSeries series{named ? "layer " + layers[i]["layer_id"].Text() : "",
                       DepthCss(i, layers.size()) + (layers.size() > 16 ? " quiet" : ""),
                       {},
                       layer_side["clip_error"].pointer()};
    for (size_t c = 0; c < errors.size(); ++c) {
      series.points.push_back({ratios[c].Number(), errors[c].Number()});
      if (ratios[c].Number() == layer_side["clip_ratio"].Number())
        chosen.points.push_back(series.points.back());
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  chart.series.push_back(std::move(chosen));
  const Record recommended = report["serving"][serving];
  chart.rules.push_back(
      {recommended.Number(), 0, FormatNumber(recommended.Number(), Format::kBits)});
  return RenderLineChart(chart);
}

}  // namespace

std::string ClipSection(const Record& report) {
  const std::string figures =
      Curves(report, "k", "k_clip_ratio", "Keys") + Curves(report, "v", "v_clip_ratio", "Values");
  if (figures.empty()) return {};
  return Note(
             "Quantization error of held-out tokens, weighted with the importance that the "
             "rotation was fitted to, against the share of each row that is not clipped. Dots: the "
             "ratio chosen for each layer. Vertical line: the ratio recommended for all layers. "
             "Darker lines (lighter on a dark page): deeper layers.") +
         FigureRow(figures);
}

}  // namespace oscar
