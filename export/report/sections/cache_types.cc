// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the cache types of layers that were chosen for a runtime. A chart has the next-token KL for
// each bit budget, a table compares the rules for distributing a budget over layers, and another
// has the chosen types.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "export/report/html.h"
#include "export/report/line_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

std::string Curve(const Record& types) {
  LineChart chart;
  chart.id = "cache-types-curve";
  chart.title = "Budget against KL";
  chart.description = "Next-token KL against stored bits per value, logarithmic y axis.";
  chart.x_label = "stored bits per value";
  chart.y_label = "next-token KL, nats";
  chart.y_floor = 1e-8;
  ChartSeries series{"by the next token", "c1 strong", {}};
  series.dots = true;
  double before = 0;
  for (const Record& point : types["curve"].Items()) {
    const double bits = point["bits_stored"].Number();
    if (bits > before) series.points.push_back({bits, point["token_kl"].Number()});
    before = bits;
  }
  chart.series.push_back(std::move(series));
  return RenderLineChart(chart);
}

}  // namespace

std::string CacheTypesSection(const Record& report) {
  if (!report["serving"].Has("cache_types")) return {};
  const Record types = report["serving"]["cache_types"];
  std::vector<TableRow> plans, layers;
  for (const Record& plan : types["plans"].Items()) {
    const bool decided = plan["by"].Text() == types["price"].Text();
    plans.push_back(
        {{Html(plan["by"].Text()), Value(plan["bits_stored"], Format::kBits),
          Value(plan["token_kl"], Format::kError), Value(plan["token_kl_p99"], Format::kError)},
         decided ? "headline" : ""});
  }
  for (const Record& layer : types["layers"].Items()) {
    layers.push_back({{Value(layer["layer_id"], Format::kCount), Html(layer["k"].Text()),
                       Html(layer["v"].Text())},
                      "",
                      {"", "text", "text"}});
  }
  return fmt::format(
             "<p>For <code>{}</code>, within {} bits per value including scales: each layer’s "
             "types of keys and values are chosen by what each costs the next token on {} held-out "
             "tokens when everything else is exact.</p>\n",
             Html(types["for"].Text()), Value(types["bits"], Format::kBits),
             Value(types["tokens"], Format::kCount)) +
         FigureRow(Curve(types)) +
         Table("Rules for distributing the budget",
               {"by", "bits stored", "next-token KL", "99th percentile"}, plans) +
         fmt::format("<details><summary>Types of all layers</summary>\n{}</details>\n",
                     Table("Types by layer", {"layer", "keys", "values"}, layers));
}

}  // namespace oscar
