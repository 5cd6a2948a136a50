// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A chart of points, where less is better on both axes. The points on the Pareto front, which no
// other point beats on both axes, are connected and named. A point at zero has no place on a log
// axis and is left out; the caption must say so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/axis.h"
#include "export/report/record.h"

namespace oscar {

// Returns the indices of the points (x, y) on the Pareto front, by ascending x. A point is on it if
// no other point is less or equal in both and less in one. Of equal points, only the first is on
// it.
std::vector<size_t> ParetoFront(const std::vector<std::pair<double, double>>& points);

struct ScatterPoint {
  Record x, y;
  std::optional<Record> interval = {};  // interval of y, [lo, hi]
  std::string name;                     // text shown on hover
  std::string label;                    // text at the chart's edge, if it is on the front
  std::string css;                      // colour class
  bool counts = true;                   // whether it may be on the front; a null control may not
};

struct ScatterChart {
  std::string id, title, note, description;  // as in LineChart
  std::string x_label, y_label;
  std::vector<double> x_ticks = {};
  std::vector<ScatterPoint> points;  // both axes are logarithmic
};

// Returns an empty string if no point can be drawn.
std::string RenderScatterChart(const ScatterChart& chart);

}  // namespace oscar
