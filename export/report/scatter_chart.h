// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Points in a plane where less is better on both axes, with the Pareto front drawn and named:
// what no other point beats in both. A point at zero has no place on a log axis and is left
// out; the caption must say so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/axis.h"
#include "export/report/record.h"

namespace oscar {

// Indices of the (x, y) that no other beats: less or equal in both and less in one. Ascending x;
// of equal points the first.
std::vector<size_t> ParetoFront(const std::vector<std::pair<double, double>>& points);

struct ScatterPoint {
  Record x, y;
  std::optional<Record> interval = {};  // of y, [lo, hi]
  std::string name;                     // text: shown when pointed at
  std::string label;                    // text: at the chart's edge, if it is on the front
  std::string css;                      // colour class
  bool counts = true;                   // for the front; a null control does not
};

struct ScatterChart {
  std::string id, title, note, description;  // as in LineChart
  std::string x_label, y_label;
  std::vector<double> x_ticks = {};
  std::vector<ScatterPoint> points;  // both axes are logarithmic
};

// Empty if no point has a place.
std::string RenderScatterChart(const ScatterChart& chart);

}  // namespace oscar
