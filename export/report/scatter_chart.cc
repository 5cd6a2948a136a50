// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/scatter_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "export/report/html.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr double kScatterWidth = 420, kScatterHeight = 300, kScatterLeft = 44, kScatterTop = 26,
                 kScatterBottom = 38;
constexpr double kScatterLabelGap = 14.5, kLabelRoom = 18 + kCharacterWidth * kMaxLabelCharacters;

bool HasPlace(const ScatterPoint& point) { return point.x.Number() > 0 && point.y.Number() > 0; }

std::string Mark(const ScatterPoint& point, const Axis& x, const Axis& y, bool on_front) {
  const std::string px = Coordinate(x(point.x.Number())), py = Coordinate(y(point.y.Number()));
  std::string svg = fmt::format("<g class=\"{}{}\"><title>{}: {} bits, {}</title>", point.css,
                                on_front ? " strong" : "", Html(point.name),
                                FormatNumber(point.x.Number(), Format::kBits),
                                FormatNumber(point.y.Number(), Format::kError));
  if (point.interval) {
    svg += fmt::format("<path class=\"whisker\" d=\"M{} {}V{}\"/>", px,
                       Coordinate(y((*point.interval)[0].Number())),
                       Coordinate(y((*point.interval)[1].Number())));
  }
  svg += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>",
                     on_front ? "dot" : "ring", px, py, on_front ? "4.5" : "3",
                     DataAttributes(point.y));
  return svg + "</g>\n";
}

// Draws the front as a staircase, because no better point is known between two of its points.
std::string FrontLine(const std::vector<const ScatterPoint*>& front, const Axis& x, const Axis& y) {
  std::string points;
  double last = 0;
  for (const ScatterPoint* point : front) {
    const double px = x(point->x.Number()), py = y(point->y.Number());
    if (!points.empty()) points += fmt::format(" {},{} ", Coordinate(px), Coordinate(last));
    points += Coordinate(px) + "," + Coordinate(py);
    last = py;
  }
  points += fmt::format(" {},{}", Coordinate(x.end), Coordinate(last));
  return fmt::format("<g class=\"sr quiet\"><polyline class=\"front\" points=\"{}\"/></g>\n",
                     points);
}

std::string Labels(const std::vector<const ScatterPoint*>& front, const Axis& x, const Axis& y) {
  std::vector<double> wanted;
  for (const ScatterPoint* point : front) wanted.push_back(y(point->y.Number()));
  const std::vector<double> places = SpreadOut(wanted, kScatterLabelGap, y.end, y.start);
  std::string svg;
  for (size_t i = 0; i < front.size(); ++i) {
    svg += fmt::format("<g class=\"{}\"><path class=\"leader\" d=\"M{} {}L{} {}\"/>{}</g>\n",
                       front[i]->css, Coordinate(x(front[i]->x.Number()) + 5),
                       Coordinate(wanted[i]), Coordinate(x.end + 9), Coordinate(places[i]),
                       SvgText(x.end + 12, places[i] + 4, "label", front[i]->label));
  }
  return svg;
}

}  // namespace

std::vector<size_t> ParetoFront(const std::vector<std::pair<double, double>>& points) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a] < points[b]; });
  std::vector<size_t> front;
  double best = std::numeric_limits<double>::infinity();
  for (const size_t i : order) {
    if (points[i].second >= best) continue;
    best = points[i].second;
    front.push_back(i);
  }
  return front;
}

std::string RenderScatterChart(const ScatterChart& chart) {
  std::vector<const ScatterPoint*> drawn, counted;
  std::vector<std::pair<double, double>> places;
  Range x_range(Scale::kLog), y_range(Scale::kLog);
  for (const ScatterPoint& point : chart.points) {
    if (!HasPlace(point)) continue;
    drawn.push_back(&point);
    x_range.Add(point.x.Number());
    y_range.Add(point.y.Number());
    if (!point.counts) continue;
    counted.push_back(&point);
    places.emplace_back(point.x.Number(), point.y.Number());
  }
  if (drawn.empty()) return {};
  std::vector<const ScatterPoint*> front;
  for (const size_t i : ParetoFront(places)) front.push_back(counted[i]);

  const double height =
      std::max(kScatterHeight,
               kScatterTop + kScatterBottom + kScatterLabelGap * static_cast<double>(front.size()));
  const double bottom = height - kScatterBottom;
  const Axis x = x_range.MakeAxis(kScatterLeft + 4, kScatterWidth - kLabelRoom);
  const Axis y = y_range.MakeAxis(bottom, kScatterTop);
  std::string svg = SvgText(0, kTopTitleBaseline, "axis-title", chart.y_label);
  for (const double tick : y.Ticks(7)) {
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>", Coordinate(kScatterLeft),
                       Coordinate(y(tick)), Coordinate(x.end));
    svg += SvgText(kScatterLeft - 5, y(tick) + 4, "axis end", TickText(tick));
  }
  for (const double tick : chart.x_ticks.empty() ? x.Ticks(5) : chart.x_ticks) {
    if (tick < x.lo || tick > x.hi) continue;
    svg += fmt::format("<path class=\"tick\" d=\"M{} {}v4\"/>", Coordinate(x(tick)),
                       Coordinate(bottom));
    svg += SvgText(x(tick), bottom + 17, "axis middle", TickText(tick));
  }
  svg += fmt::format("<path class=\"base\" d=\"M{} {}H{}\"/>\n", Coordinate(kScatterLeft),
                     Coordinate(bottom), Coordinate(x.end));
  svg += SvgText((kScatterLeft + x.end) / 2, height - 5, "axis-title middle", chart.x_label);
  if (!front.empty()) svg += FrontLine(front, x, y);
  for (const ScatterPoint* point : drawn)
    svg += Mark(*point, x, y, std::ranges::find(front, point) != front.end());
  svg += Labels(front, x, y);
  return Figure({chart.id, chart.title, chart.note, chart.description, "log"}, kScatterWidth,
                height, svg);
}

}  // namespace oscar
