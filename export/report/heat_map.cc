// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "export/report/axis.h"
#include "export/report/html.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr double kHeatWidth = 420, kHeatLeft = 26, kHeatRight = 418, kHeatTop = 20;
constexpr int kHeatSteps = 9;
constexpr double kRoomForNumber = 46;  // chart units

std::string Cell(const Record& value, const Record& layer_id, size_t head, int step, double x,
                 double y, double width, double height) {
  return fmt::format(
      "<rect class=\"h{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}><title>layer {}, KV "
      "head {}: {}</title></rect>",
      step, Coordinate(x), Coordinate(y), Coordinate(width), Coordinate(height),
      DataAttributes(value), layer_id.Text(), head, FormatNumber(value.Number(), Format::kError));
}

std::string Key(double lo, double hi, double y) {
  std::string svg = SvgText(kHeatLeft, y + 11, "axis", FormatNumber(lo, Format::kError));
  const double start = kHeatLeft + 56, width = 18;
  for (int step = 0; step < kHeatSteps; ++step) {
    svg += fmt::format("<rect class=\"h{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\"/>", step,
                       Coordinate(start + step * width), Coordinate(y), Coordinate(width));
  }
  return svg + SvgText(start + kHeatSteps * width + 6, y + 11, "axis",
                       FormatNumber(hi, Format::kError) + " (log scale)");
}

}  // namespace

int HeatStep(double value, double lo, double hi) {
  if (value <= 0 || value <= lo) return 0;
  if (hi <= lo || value >= hi) return kHeatSteps - 1;
  // Uses logarithms, because quotients of values may be infinite.
  const double share = (std::log(value) - std::log(lo)) / (std::log(hi) - std::log(lo));
  return std::clamp(static_cast<int>(share * kHeatSteps), 0, kHeatSteps - 1);
}

std::string RenderHeatMap(const HeatMap& map) {
  const std::vector<Record> values = map.values.Items(), columns = map.columns.Items();
  const size_t layers = values.size();
  Range range(Scale::kLog);
  size_t heads = 0;
  for (const Record& layer : values) {
    heads = std::max(heads, layer.size());
    for (const Record& value : layer.Items()) range.Add(value.Number());
  }
  if (layers == 0 || heads == 0) return {};
  const double lo = map.lo > 0 ? map.lo : range.empty() ? 1 : range.lo();
  const double hi = map.hi > 0 ? map.hi : range.empty() ? 1 : range.hi();

  const double width = std::min((kHeatRight - kHeatLeft) / static_cast<double>(layers), 90.0);
  const double height = std::clamp(width, 16.0, 34.0);
  const double bottom = kHeatTop + height * static_cast<double>(heads);
  const double gap = width > 12 ? 1.5 : 0.5;
  std::string svg = SvgText(0, kTopTitleBaseline, "axis-title", "KV head");
  for (size_t head = 0; head < heads; ++head) {
    svg += SvgText(kHeatLeft - 6, kHeatTop + height * (static_cast<double>(head) + 0.5) + 4,
                   "axis end", std::to_string(head));
  }
  size_t stride = 1;  // between the labelled layers
  while (width * static_cast<double>(stride) < 24) stride *= 2;
  for (size_t i = 0; i < layers; ++i) {
    const double x = kHeatLeft + width * static_cast<double>(i);
    if (i % stride == 0)
      svg += SvgText(x + width / 2, bottom + 14, "axis middle", columns[i].Text());
    const std::vector<Record> layer = values[i].Items();
    for (size_t head = 0; head < layer.size(); ++head) {
      const double y = kHeatTop + height * static_cast<double>(head);
      const int step = HeatStep(layer[head].Number(), lo, hi);
      svg += Cell(layer[head], columns[i], head, step, x, y, width - gap, height - gap);
      if (width >= kRoomForNumber) {
        svg += SvgText(x + (width - gap) / 2, y + height / 2 + 4,
                       step <= 4 ? "cell middle" : "cell dense middle",
                       FormatNumber(layer[head].Number(), Format::kError));
      }
    }
    svg += "\n";
  }
  svg += SvgText((kHeatLeft + kHeatRight) / 2, bottom + 30, "axis-title middle", "layer");
  svg += Key(lo, hi, bottom + 38);
  return Figure({map.id, map.title, map.note, map.description, "heat"}, kHeatWidth, bottom + 56,
                svg);
}

}  // namespace oscar
