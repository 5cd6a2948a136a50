// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "export/report/axis.h"
#include "export/report/heat_map.h"
#include "export/report/line_chart.h"
#include "export/report/scatter_chart.h"

namespace oscar {
namespace {

TEST(Coordinate, IsTheTenthThatPrintfRoundsTo) {
  for (const double unit : {1.0, 1e-3, 0.1 + 1e-9, 0.05, 1234.5678, 1e5, 1e300}) {
    for (int i = -2000; i <= 2000; ++i) {
      std::string text = fmt::format("{:.1f}", i * unit);
      if (text.ends_with(".0")) text.resize(text.size() - 2);
      EXPECT_EQ(Coordinate(i * unit), text == "-0" ? "0" : text);
    }
  }
  EXPECT_EQ(Coordinate(-0.04), "0");
  EXPECT_EQ(Coordinate(std::nan("")), "nan");
}

TEST(Axis, PutsEqualFactorsAtEqualDistancesOnALogScale) {
  const Axis axis{Scale::kLog, 0.01, 1, 100, 300};
  EXPECT_DOUBLE_EQ(axis(0.01), 100);
  EXPECT_DOUBLE_EQ(axis(0.1), 200);
  EXPECT_DOUBLE_EQ(axis(1), 300);
  EXPECT_DOUBLE_EQ(axis(50), 300);  // clamped to the end of the axis
  EXPECT_DOUBLE_EQ(axis(0), 100);
  const Axis falling{Scale::kLinear, 0, 10, 200, 20};  // y grows downwards on a screen
  EXPECT_DOUBLE_EQ(falling(5), 110);
}

TEST(Axis, TicksAreRoundInsideAndNeitherFewNorMany) {
  for (const double lo : {1e-12, 3.3e-4, 0.9, 17.0}) {
    for (const double factor : {2.0, 5.0, 30.0, 1e3, 1e6, 1e9}) {
      const Axis axis{Scale::kLog, lo, lo * factor, 0, 1};
      const std::vector<double> ticks = axis.Ticks(7);
      EXPECT_GE(ticks.size(), 2u) << lo << " " << factor;
      EXPECT_LE(ticks.size(), 10u) << lo << " " << factor;
      for (double tick : ticks) {
        EXPECT_GE(tick, lo * 0.999);
        EXPECT_LE(tick, lo * factor * 1.001);
      }
    }
  }
  EXPECT_EQ((Axis{Scale::kLinear, 0, 16, 0, 1}).Ticks(7), (std::vector<double>{0, 5, 10, 15}));
}

TEST(Axis, OfTheLargestNumbersHasFiniteTicks) {
  for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
    Range range(scale);
    for (const double value : {-1.7e308, 1e-308, 1.7e308}) range.Add(value);
    const Axis axis = range.MakeAxis(0, 1);
    EXPECT_TRUE(std::isfinite(axis.hi - axis.lo));
    EXPECT_TRUE(std::isfinite(axis(1)));
    const std::vector<double> ticks = axis.Ticks(7);
    EXPECT_GE(ticks.size(), 2u);
    for (double tick : ticks) EXPECT_TRUE(std::isfinite(tick));
  }
}

TEST(Axis, HoldsWhatWasAddedAndIgnoresWhatALogScaleCannotShow) {
  Range range(Scale::kLog);
  for (double value : {0.0, -3.0, 0.02, 0.7, std::nan("")}) range.Add(value);
  const Axis axis = range.MakeAxis(0, 1);
  EXPECT_LE(axis.lo, 0.02);
  EXPECT_GE(axis.hi, 0.7);
  EXPECT_GT(axis.lo, 0.01);
  EXPECT_LT(axis.hi, 1.0);
  Range single(Scale::kLog);
  single.Add(0.3);
  EXPECT_GE(single.MakeAxis(0, 1).Ticks(7).size(), 2u);
}

TEST(Axis, CountsTokensInPowersOfTwo) {
  EXPECT_EQ(TickText(4096, true), "4K");
  EXPECT_EQ(TickText(131072, true), "128K");
  EXPECT_EQ(TickText(512, true), "512");
  EXPECT_EQ(TickText(4096), "4096");
  EXPECT_EQ(TickText(0.005), "0.005");
  EXPECT_EQ(TickText(2e-7), "2e-7");
}

TEST(Labels, MakeRoomForEachOtherKeepTheirOrderAndStayInside) {
  const std::vector<double> wanted = {50, 51, 52, 200, 10};
  const std::vector<double> places = SpreadOut(wanted, 14, 0, 210);
  EXPECT_NEAR(places[0], 51 - 14, 1e-9);  // these three spread around their middle
  EXPECT_NEAR(places[1], 51, 1e-9);
  EXPECT_NEAR(places[2], 51 + 14, 1e-9);
  EXPECT_NEAR(places[3], 200, 1e-9);  // the others do not move
  EXPECT_NEAR(places[4], 10, 1e-9);
  const std::vector<double> crowded = SpreadOut(std::vector<double>(20, 5.0), 14, 0, 100);
  for (size_t i = 1; i < crowded.size(); ++i) EXPECT_GT(crowded[i], crowded[i - 1]);
  EXPECT_GE(crowded.front(), -1e-9);
  EXPECT_LE(crowded.back(), 100 + 1e-9);
}

TEST(HeatMap, StepsGrowWithTheValue) {
  EXPECT_EQ(HeatStep(0, 0.01, 1), 0);
  EXPECT_EQ(HeatStep(0.01, 0.01, 1), 0);
  EXPECT_EQ(HeatStep(0.1, 0.01, 1), 4);
  EXPECT_EQ(HeatStep(1, 0.01, 1), 8);
  EXPECT_EQ(HeatStep(5, 0.01, 1), 8);
  EXPECT_EQ(HeatStep(1e10, 1e-300, 1e300), 4);
  EXPECT_EQ(HeatStep(1, 1, 1), 0);
}

TEST(LineChart, DrawsNothingWhereThereIsNothing) {
  LineChart chart;
  chart.id = "x";
  chart.series = {{"zero", "s0", {{1, 0}, {2, 0}}}};  // a log scale shows no zeros
  EXPECT_EQ(RenderLineChart(chart), "");
  chart.series[0].points.push_back({3, 0.5});
  EXPECT_NE(RenderLineChart(chart).find("<polyline"), std::string::npos);
  EXPECT_EQ(RenderLineChart(chart).find("nan"), std::string::npos);
}

TEST(ParetoFront, IsWhatNothingBeats) {
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(ParetoFront({}), std::vector<size_t>{});
  // Point 0 beats point 1, point 2 beats point 4 (at equal x), and point 5 equals point 2.
  const Points points = {{2, 10}, {3, 10}, {3, 4}, {8, 1}, {3, 5}, {3, 4}, {1, 20}};
  EXPECT_EQ(ParetoFront(points), (std::vector<size_t>{6, 0, 2, 3}));
  for (const size_t i : ParetoFront(points)) {
    for (const auto& other : points) {
      EXPECT_FALSE(other.first <= points[i].first && other.second < points[i].second);
      EXPECT_FALSE(other.first < points[i].first && other.second <= points[i].second);
    }
  }
}

TEST(ScatterChart, NamesTheFrontAloneAndLeavesOutWhatHasNoPlace) {
  const Json numbers = {2.0, 3.0, 4.0, 0.5, 0.1, 0.2, 0.0};
  const JsonText text(numbers, "numbers");
  const Record record(text.root());
  ScatterChart chart;
  chart.id = "scatter";
  const auto add = [&](size_t x, size_t y, const char* name, bool counts) {
    chart.points.push_back({.x = record[x],
                            .y = record[y],
                            .name = name,
                            .label = name,
                            .css = "s1",
                            .counts = counts});
  };
  add(0, 3, "cheap", true);
  add(1, 4, "good", true);
  add(2, 5, "beaten", true);
  add(0, 4, "control", false);
  add(2, 6, "exact", true);
  const std::string svg = RenderScatterChart(chart);
  for (const char* front : {"cheap", "good"})
    EXPECT_NE(svg.find(std::string("class=\"label\">") + front + "<"), svg.npos) << front;
  for (const char* not_front : {"beaten", "control"}) {
    EXPECT_EQ(svg.find(std::string(">") + not_front + "</text>"), svg.npos) << not_front;
    EXPECT_NE(svg.find(std::string("<title>") + not_front), svg.npos) << not_front;
  }
  EXPECT_EQ(svg.find("exact"), svg.npos);
  EXPECT_EQ(RenderScatterChart({}), "");
}

}  // namespace
}  // namespace oscar
