// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A chart with a row per item. A line has the item's name and numbers, and below it are its marks
// (dots with intervals, bars, ticks) on a common scale. Names have the full width, so they stay
// legible on a phone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "export/report/axis.h"
#include "export/report/record.h"

namespace oscar {

struct ChartMark {
  enum Kind { kDot, kRing, kBar, kThinBar, kTick } kind = kDot;
  Record number;                        // the value shown
  std::optional<Record> interval = {};  // [lo, hi], drawn as a whisker
};

struct ChartRow {
  std::string label;    // text
  std::string css;      // colour class
  std::string numbers;  // text on the right
  std::vector<ChartMark> marks;
};

struct RowChart {
  std::string id, title, note, description;  // as in LineChart
  std::string x_label;
  Scale scale = Scale::kLinear;
  std::vector<ChartRow> rows;
  std::optional<Range> range = {};  // range of the axis, if several charts share it
};

std::string RenderRowChart(const RowChart& chart);

}  // namespace oscar
