// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/row_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/report/html.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr double kRowWidth = 420, kRowLeft = 6, kRowRight = 410, kRowTop = 6, kRowPitch = 32,
                 kRowBottom = 38;
constexpr size_t kRowLabelCharacters = 30;

std::string Mark(const ChartMark& mark, const Axis& x, double y, Scale scale) {
  const double value = mark.number.Number();
  if (scale == Scale::kLog && value <= 0) return {};  // only printed in the row
  const std::string data = DataAttributes(mark.number);
  const std::string at = Coordinate(x(value)), middle = Coordinate(y);
  std::string svg;
  if (mark.interval) {
    svg += fmt::format("<path class=\"whisker\" d=\"M{} {}H{}\"/>",
                       Coordinate(x((*mark.interval)[0].Number())), middle,
                       Coordinate(x((*mark.interval)[1].Number())));
  }
  const auto bar = [&](double top, double height) {
    return fmt::format("<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>",
                       Coordinate(x.start), Coordinate(y + top),
                       Coordinate(std::max(x(value) - x.start, 0.5)), Coordinate(height), data);
  };
  switch (mark.kind) {
    case ChartMark::kDot:
      return svg + fmt::format("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"4.5\" {}/>", at,
                               middle, data);
    case ChartMark::kRing:
      return svg + fmt::format("<circle class=\"ring\" cx=\"{}\" cy=\"{}\" r=\"4\" {}/>", at,
                               middle, data);
    case ChartMark::kBar:
      return svg + bar(-5, 5);
    case ChartMark::kThinBar:
      return svg + fmt::format("<g class=\"second\">{}</g>", bar(1, 5));
    case ChartMark::kTick:
      return svg + fmt::format("<path class=\"mark\" d=\"M{} {}v13\" {}/>", at, Coordinate(y - 6.5),
                               data);
  }
  return svg;
}

}  // namespace

std::string RenderRowChart(const RowChart& chart) {
  Range range(chart.scale);
  for (const ChartRow& row : chart.rows) {
    for (const ChartMark& mark : row.marks) {
      range.Add(mark.number.Number());
      if (!mark.interval) continue;
      for (const Record& end : mark.interval->Items()) range.Add(end.Number());
    }
  }
  if (chart.rows.empty()) return {};
  const Axis x = chart.range.value_or(range).MakeAxis(kRowLeft, kRowRight);
  const double bottom = kRowTop + kRowPitch * static_cast<double>(chart.rows.size());
  std::string svg;
  const std::vector<double> ticks = x.Ticks(7);
  for (double tick : ticks) {
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}V{}\"/>", Coordinate(x(tick)),
                       Coordinate(kRowTop), Coordinate(bottom));
    const bool first = x(tick)<kRowLeft + 10, last = x(tick)> kRowRight - 10;
    svg += SvgText(x(tick), bottom + 15,
                   first  ? "axis"
                   : last ? "axis end"
                          : "axis middle",
                   TickText(tick));
  }
  svg +=
      SvgText((kRowLeft + kRowRight) / 2, bottom + 32, "axis-title middle", chart.x_label) + "\n";
  for (size_t i = 0; i < chart.rows.size(); ++i) {
    const ChartRow& row = chart.rows[i];
    const double top = kRowTop + kRowPitch * static_cast<double>(i);
    svg += fmt::format(
        "<g class=\"row {}\"><text class=\"name\" x=\"{}\" y=\"{}\">{}</text><text class=\"number "
        "end\" x=\"{}\" y=\"{}\">{}</text>",
        row.css, Coordinate(kRowLeft), Coordinate(top + 12),
        HtmlCut(row.label, kRowLabelCharacters), Coordinate(kRowRight), Coordinate(top + 12),
        Html(row.numbers));
    for (const ChartMark& mark : row.marks) svg += Mark(mark, x, top + 22, chart.scale);
    svg += "</g>\n";
  }
  return Figure({chart.id, chart.title, chart.note, chart.description,
                 chart.scale == Scale::kLog ? "log" : "linear"},
                kRowWidth, bottom + kRowBottom, svg);
}

}  // namespace oscar
