// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The error against the length of the context. Arms with and without 16-bit windows have separate
// charts with the same scale, because their lines would hide each other.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/line_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

using Arms = std::vector<ArmLook>;

// Returns the arms with or without windows, except the reference, which has no error.
Arms Group(const Arms& arms, bool windows) {
  Arms group;
  for (const ArmLook& look : arms) {
    if (look.windows == windows && look.css != "sr") group.push_back(look);
  }
  return group;
}

// Makes a line from buckets with `from`, `to` and `member`. Its points are in the middle of each
// bucket.
ChartSeries ByPosition(const ArmLook& look, const Record& buckets, const char* member) {
  ChartSeries series{look.chart_label, look.line_css, {}, buckets.pointer(), member};
  for (const Record& bucket : buckets.Items()) {
    series.points.push_back(
        {(bucket["from"].Number() + bucket["to"].Number()) / 2, bucket[member].Number()});
  }
  return series;
}

// Returns where the buckets of a chart's lines begin and end.
std::vector<double> Ends(const Record& buckets) {
  if (buckets.size() == 0) return {};
  return {buckets[0]["from"].Number(), buckets[buckets.size() - 1]["to"].Number()};
}

// Returns the positions at which the windows hold the whole context, if the arms have windows.
std::vector<ChartBand> WindowsBand(const Arms& arms) {
  double end = 0;
  for (const ArmLook& look : arms) {
    if (!look.windows) continue;  // the record marks these positions even for arms without windows
    for (const Record& bucket : look.arm["local"]["by_position"].Items()) {
      if (bucket["inside_windows"].True()) end = std::max(end, bucket["to"].Number());
    }
  }
  if (end == 0) return {};
  return {{0, end, "in windows"}};
}

Range SharedRange(const Arms& arms, const char* metrics) {
  Range range(Scale::kLog);
  for (const ArmLook& look : arms) {
    if (!look.arm.Has(metrics)) continue;
    for (const Record& bucket : look.arm[metrics]["by_position"].Items())
      range.Add(bucket["kl"].Number());
  }
  return range;
}

std::string PositionChart(const Arms& arms, const char* metrics, const Range& range,
                          const std::string& id, const std::string& title,
                          const std::string& note) {
  LineChart chart;
  chart.id = id;
  chart.title = title;
  chart.note = note;
  chart.description =
      "Attention-KL of each configuration against the position of the query, with a logarithmic y "
      "axis.";
  chart.x_label = "position of the query, tokens";
  chart.y_label = "attention-KL, nats";
  chart.tokens = true;
  chart.y_range = range;
  chart.bands = WindowsBand(arms);
  for (const ArmLook& look : arms) {
    if (!look.arm.Has(metrics)) continue;
    chart.x_within = Ends(look.arm[metrics]["by_position"]);
    chart.series.push_back(ByPosition(look, look.arm[metrics]["by_position"], "kl"));
  }
  return RenderLineChart(chart);
}

std::string TokenLossChart(const Arms& arms) {
  LineChart chart;
  chart.id = "context-token";
  chart.title = "Prediction, by position";
  chart.note = "Next-token KL compares the distributions over the vocabulary.";
  chart.description =
      "KL of the next-token distribution of each configuration against position, with a "
      "logarithmic y axis.";
  chart.x_label = "position, tokens";
  chart.y_label = "next-token KL, nats";
  chart.tokens = true;
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("text")) continue;
    chart.x_within = Ends(look.arm["text"]["by_position"]);
    chart.series.push_back(ByPosition(look, look.arm["text"]["by_position"], "token_kl"));
  }
  return RenderLineChart(chart);
}

std::string ContextLengthChart(const Arms& arms) {
  LineChart chart;
  chart.id = "context-length";
  chart.title = "By length of the text";
  chart.note =
      "Attention-KL in the second half of texts of each length, where a query sees a quantized "
      "key.";
  chart.description =
      "Attention-KL of each configuration against the length of the text, with logarithmic axes.";
  chart.x_label = "length of the text, tokens";
  chart.y_label = "attention-KL, nats";
  chart.tokens = true;
  chart.x_scale = Scale::kLog;
  std::set<double> lengths;
  for (const ArmLook& look : arms) {
    const Record by_length = look.arm["local"]["by_length"];
    ChartSeries series{look.chart_label, look.line_css, {}, by_length.pointer(), "kl", true};
    for (const Record& entry : by_length.Items()) {
      series.points.push_back({entry["length"].Number(), entry["kl"].Number()});
      lengths.insert(entry["length"].Number());
    }
    chart.series.push_back(std::move(series));
  }
  if (lengths.size() < 2) return {};
  chart.x_ticks.assign(lengths.begin(), lengths.end());
  return RenderLineChart(chart);
}

}  // namespace

std::string ContextSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const Arms arms = LookOfArms(report["validation"]);
  const bool windows = HeadlineOf(arms).windows;
  const auto words = [](bool with) { return with ? "with windows" : "without windows"; };
  const Arms first = Group(arms, windows), second = Group(arms, !windows);
  const Range range = SharedRange(arms, "local");
  std::string figures =
      PositionChart(first, "local", range, "context-first",
                    fmt::format("Attention, configurations {}", words(windows)), "");
  figures += PositionChart(second, "local", range, "context-second",
                           fmt::format("Attention, configurations {}", words(!windows)),
                           "On the same scale.");
  figures += PositionChart(first, "end_to_end", SharedRange(first, "end_to_end"), "context-carried",
                           fmt::format("Attention end to end, configurations {}", words(windows)),
                           "With the errors of earlier layers carried along.");
  figures += TokenLossChart(first);
  figures += ContextLengthChart(first);
  if (figures.empty()) return {};
  return Note(
             "A query at position p sees p + 1 tokens. Dashed lines: not clipped. Gray: null "
             "controls. The unquantized cache has no error and no line. Where a configuration's "
             "windows hold the whole context, its error is zero, so its line begins later.") +
         FigureRow(figures);
}

}  // namespace oscar
