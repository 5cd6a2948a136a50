// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows how unevenly importance is distributed over directions (eigenvalues), and how evenly over
// coordinates after the rotation. The line "along U" shows dim * spectrum[0], the ratio of the
// largest eigenvalue to the mean one. This product is only drawn, because printed numbers are never
// recomputed.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/line_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

std::string Spectra(const Record& report, const char* side, const char* title) {
  LineChart chart;
  chart.id = fmt::format("spectrum-{}", side);
  chart.title = title;
  chart.description =
      "Eigenvalues divided by the trace against rank, one line per layer, with a logarithmic y "
      "axis.";
  chart.x_label = "rank of the eigenvalue";
  chart.y_label = "share of the trace";
  const std::vector<Record> layers = report["layers"].Items();
  double largest = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Record layer_side = layers[i]["sides"][side];
    if (!layer_side.Has("spectrum")) continue;
    const std::vector<Record> spectrum = layer_side["spectrum"].Items(),
                              ranks = layer_side["spectrum_ranks"].Items();
    const bool named = i == 0 || i + 1 == layers.size();
    ChartSeries series{named ? "layer " + layers[i]["layer_id"].Text() : "",
                       DepthCss(i, layers.size()) + (layers.size() > 16 ? " quiet" : ""),
                       {},
                       layer_side["spectrum"].pointer()};
    for (size_t r = 0; r < spectrum.size(); ++r) {
      series.points.push_back({ranks[r].Number(), spectrum[r].Number()});
      largest = std::max(largest, spectrum[r].Number());
    }
    chart.series.push_back(std::move(series));
  }
  chart.y_floor = largest * 1e-6;
  return RenderLineChart(chart);
}

// Charts, by layer, the ratio of the largest importance of a coordinate to the mean importance.
std::string Flatness(const Record& report, const char* side, const char* title, const char* css) {
  LineChart chart;
  chart.id = fmt::format("flatness-{}", side);
  chart.title = title;
  chart.description =
      "Largest over mean importance of a coordinate by layer, before and after the rotation, with "
      "a logarithmic y axis.";
  chart.x_label = "layer";
  chart.y_label = "largest / mean importance";
  ChartSeries before{"along U", std::string(css) + " dashed", {}},
      after{"after R", std::string(css) + " strong", {}};
  before.dots = after.dots = report["layers"].size() <= 16;
  for (const Record& layer : report["layers"].Items()) {
    const Record layer_side = layer["sides"][side];
    const double id = layer["layer_id"].Number();
    after.points.push_back({id, layer_side["importance_max_over_mean"].Number()});
    if (layer_side.Has("spectrum") && layer_side["spectrum"].size() > 0)
      before.points.push_back(
          {id, layer_side["dim"].Number() * layer_side["spectrum"][0].Number()});
  }
  if (before.points.empty()) return {};
  chart.series = {std::move(before), std::move(after)};
  return RenderLineChart(chart);
}

}  // namespace

std::string SpectraSection(const Record& report) {
  const std::string spectra = Spectra(report, "k", "Keys: spectrum of the query covariance") +
                              Spectra(report, "v", "Values: spectrum of the value target");
  if (spectra.empty()) return {};
  return Note(
             "How much each direction matters to attention: eigenvalues divided by their sum, "
             "averaged over the layer’s KV heads. Darker lines (lighter on a dark page): deeper "
             "layers. Values below a millionth of the largest are drawn at the lower edge.") +
         FigureRow(spectra) + "<h3>Flatness</h3>\n" +
         Note(
             "Quantization works best if every coordinate matters equally; 1 is flat. Along the "
             "eigenvectors U (drawn as dimension × first share of the trace), importance is "
             "concentrated on a few coordinates; R spreads it out.") +
         FigureRow(Flatness(report, "k", "Keys", "s0") + Flatness(report, "v", "Values", "s1"));
}

}  // namespace oscar
