// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The style sheet sets text sizes. They are larger on a phone, where the chart is drawn small, so
// the chart leaves room for the largest size.
#include "export/report/line_chart.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "export/report/html.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr double kLineWidth = 420, kLineHeight = 270, kLineLeft = 44, kLineTop = 26,
                 kLineBottom = 38;
constexpr double kLineLabelGap = 14.5;

bool Drawable(const LineChart& chart, const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) &&
         (chart.y_scale == Scale::kLinear || point.y > 0) &&
         (chart.x_scale == Scale::kLinear || point.x > 0);
}

std::string Polyline(const LineChart& chart, const ChartSeries& series, const Axis& x,
                     const Axis& y) {
  std::string points, dots;
  for (const ChartPoint& point : series.points) {
    if (!Drawable(chart, point)) continue;
    const std::string px = Coordinate(x(point.x)), py = Coordinate(y(point.y));
    points.append(points.empty() ? "" : " ").append(px).append(1, ',').append(py);
    if (series.dots)
      dots += fmt::format(FMT_COMPILE("<circle cx=\"{}\" cy=\"{}\" r=\"3\"/>"), px, py);
  }
  if (points.empty()) return {};
  const std::string data = series.pointer.empty()
                               ? ""
                               : fmt::format(" data-series=\"{}\" data-member=\"{}\"",
                                             Html(series.pointer), Html(series.member));
  return fmt::format(
      "<g class=\"series {}\"><title>{}</title><polyline{} points=\"{}\"{}/>{}</g>\n", series.css,
      Html(series.label), data, points, series.line ? "" : " class=\"unseen\"", dots);
}

// Draws the labels at the ends of the lines, with a leader line for each label that was moved.
std::string EndLabels(const LineChart& chart, const Axis& x, const Axis& y, double label_x) {
  std::vector<const ChartSeries*> labelled;
  std::vector<double> wanted;
  std::vector<ChartPoint> ends;
  for (const ChartSeries& series : chart.series) {
    if (series.label.empty()) continue;
    const auto last = std::find_if(series.points.rbegin(), series.points.rend(),
                                   [&](const ChartPoint& p) { return Drawable(chart, p); });
    if (last == series.points.rend()) continue;
    labelled.push_back(&series);
    ends.push_back({x(last->x), y(last->y)});
    wanted.push_back(ends.back().y);
  }
  const std::vector<double> places =
      SpreadOut(wanted, kLineLabelGap, std::min(y.start, y.end), std::max(y.start, y.end));
  std::string svg;
  for (size_t i = 0; i < labelled.size(); ++i) {
    svg += fmt::format("<g class=\"{}\"><path class=\"leader\" d=\"M{} {}L{} {}\"/>{}</g>\n",
                       labelled[i]->css, Coordinate(ends[i].x + 2), Coordinate(ends[i].y),
                       Coordinate(label_x - 3), Coordinate(places[i]),
                       SvgText(label_x, places[i] + 4, "label", labelled[i]->label));
  }
  return svg;
}

double LabelRoom(const LineChart& chart) {
  size_t longest = 0;
  for (const ChartSeries& series : chart.series)
    longest = std::max(longest, std::min(CountCharacters(series.label), kMaxLabelCharacters));
  return longest == 0 ? 10 : 18 + kCharacterWidth * static_cast<double>(longest);
}

}  // namespace

std::string RenderLineChart(const LineChart& chart) {
  Range x_range(chart.x_scale), y_range = chart.y_range;
  size_t labels = 0;
  bool anything = false;
  double x_lo = 1e300, x_hi = -1e300;
  for (const ChartSeries& series : chart.series) {
    labels += series.label.empty() ? 0 : 1;
    for (const ChartPoint& point : series.points) {
      if (!Drawable(chart, point)) continue;
      anything = true;
      x_lo = std::min(x_lo, point.x);
      x_hi = std::max(x_hi, point.x);
      y_range.Add(std::max(point.y, chart.y_floor));
    }
  }
  if (!anything) return {};
  for (const ChartBand& rule : chart.rules) {
    x_lo = std::min(x_lo, rule.from);
    x_hi = std::max(x_hi, rule.from);
  }
  for (const ChartBand& band : chart.bands) x_lo = std::min(x_lo, band.from);
  for (const std::vector<double>* more : {&chart.x_ticks, &chart.x_within}) {
    for (double value : *more) {
      x_lo = std::min(x_lo, value);
      x_hi = std::max(x_hi, value);
    }
  }
  if (x_hi <= x_lo) {
    x_lo = chart.x_scale == Scale::kLog ? x_lo / 2 : x_lo - 1;
    x_hi = chart.x_scale == Scale::kLog ? x_hi * 2 : x_hi + 1;
  }

  const double height =
      std::max(kLineHeight, kLineTop + kLineBottom + kLineLabelGap * static_cast<double>(labels));
  const double right = kLineWidth - LabelRoom(chart);
  const double bottom = height - kLineBottom;
  const Axis x{chart.x_scale, x_lo, x_hi, kLineLeft + 4, right};
  Axis y = y_range.MakeAxis(bottom, kLineTop);
  if (chart.percent) y = {Scale::kLinear, 0, 1, bottom, kLineTop};

  std::string svg = SvgText(0, kTopTitleBaseline, "axis-title", chart.y_label);
  for (const ChartBand& band : chart.bands) {
    svg += fmt::format("<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                       Coordinate(x(band.from)), Coordinate(kLineTop),
                       Coordinate(x(band.to) - x(band.from)), Coordinate(bottom - kLineTop));
    svg += SvgText(x(band.from) + 4, kLineTop + 9, "axis", band.label);
  }
  for (double tick : y.Ticks(7)) {
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>", Coordinate(kLineLeft),
                       Coordinate(y(tick)), Coordinate(right));
    const std::string text = chart.percent ? fmt::format("{:.0f}%", tick * 100) : TickText(tick);
    svg += SvgText(kLineLeft - 5, y(tick) + 4, "axis end", text);
  }
  std::vector<double> x_ticks = chart.x_ticks;
  if (x_ticks.empty() && chart.tokens) {
    double step = 16;
    while (x_hi / step > 5) step *= 2;
    for (double tick = 0; tick <= x_hi * (1 + 1e-9); tick += step) x_ticks.push_back(tick);
  }
  if (x_ticks.empty()) x_ticks = x.Ticks(5);
  for (double tick : x_ticks) {
    if (tick < x_lo || tick > x_hi) continue;
    svg += fmt::format("<path class=\"tick\" d=\"M{} {}v4\"/>", Coordinate(x(tick)),
                       Coordinate(bottom));
    svg += SvgText(x(tick), bottom + 17, "axis middle", TickText(tick, chart.tokens));
  }
  svg += fmt::format("<path class=\"base\" d=\"M{} {}H{}\"/>\n", Coordinate(kLineLeft),
                     Coordinate(bottom), Coordinate(right));
  svg += SvgText((kLineLeft + right) / 2, height - 5, "axis-title middle", chart.x_label);
  for (const ChartBand& rule : chart.rules) {
    svg += fmt::format("<path class=\"rule\" d=\"M{} {}V{}\"/>", Coordinate(x(rule.from)),
                       Coordinate(kLineTop - 4), Coordinate(bottom));
    const bool on_the_right = x(rule.from) > (kLineLeft + right) / 2;
    svg += SvgText(x(rule.from) + (on_the_right ? -5 : 5), kLineTop + 6,
                   on_the_right ? "axis end" : "axis", rule.label);
  }
  for (const ChartSeries& series : chart.series) svg += Polyline(chart, series, x, y);
  svg += EndLabels(chart, x, y, right + 12);
  return Figure({chart.id, chart.title, chart.note, chart.description,
                 chart.y_scale == Scale::kLog && !chart.percent ? "log" : "linear"},
                kLineWidth, height, svg);
}

}  // namespace oscar
