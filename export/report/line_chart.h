// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A chart of lines, labelled at their ends, as inline SVG. Colours are CSS classes of
// page_style.cc, so the page's style selects the colours for light mode, dark mode and print.
#pragma once

#include <string>
#include <vector>

#include "export/report/axis.h"

namespace oscar {

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartSeries {
  std::string label;               // text at the end of the line; empty: none
  std::string css;                 // colour class, optionally with "strong", "dashed", "quiet"
  std::vector<ChartPoint> points;  // ascending x
  std::string pointer = {};        // JSON pointer of the array with the points
  std::string member = {};         // member of its elements that is y; empty: the elements are y
  bool dots = false;               // marks at the points
  bool line = true;
};

struct ChartBand {
  double from = 0, to = 0;
  std::string label;
};

struct LineChart {
  std::string id;           // unique on the page, [a-z0-9-]
  std::string title, note;  // HTML; the figure's caption
  std::string description;  // plain text, for people who cannot see the chart
  std::string x_label, y_label;
  Scale x_scale = Scale::kLinear, y_scale = Scale::kLog;
  std::vector<double> x_ticks = {};   // empty: chosen automatically
  std::vector<double> x_within = {};  // more values that the x axis must include
  bool tokens = false;                // x counts tokens: 4096 is 4K
  bool percent = false;               // y is a fraction, from 0 to 1
  Range y_range{Scale::kLog};         // shared with other charts; extended by the series
  double y_floor = 0;                 // for a log scale: smaller values are drawn here
  std::vector<ChartBand> bands = {};
  std::vector<ChartBand> rules = {};  // vertical lines at .from
  std::vector<ChartSeries> series;
};

// Returns <figure> with caption and <svg>; empty if no series has two points (or dots).
std::string RenderLineChart(const LineChart& chart);

}  // namespace oscar
