// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows recall from long contexts, which perplexity does not reveal: by task and length for the
// headline arm, by length and depth for all arms.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/line_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

// Uses the colours of errors for accuracies: 1 is h0, 0 is h8.
std::string HeatCss(double accuracy) {
  const int step = std::clamp(static_cast<int>((1 - accuracy) * 8.999), 0, 8);
  return fmt::format("heat h{}{}", step, step > 4 ? " dense" : "");
}

// A grid of accuracies. Rows and columns are named by HTML and occur at most once.
class Grid {
 public:
  void Set(const std::string& row, const std::string& column, const Record& accuracy) {
    if (std::find(rows_.begin(), rows_.end(), row) == rows_.end()) rows_.push_back(row);
    if (std::find(columns_.begin(), columns_.end(), column) == columns_.end())
      columns_.push_back(column);
    cells_.insert_or_assign({row, column}, accuracy);
  }
  bool empty() const { return cells_.empty(); }
  std::string Render(std::string_view label, const std::string& corner) const {
    std::vector<std::string> header = {corner};
    header.insert(header.end(), columns_.begin(), columns_.end());
    std::vector<TableRow> rows;
    for (const std::string& name : rows_) {
      TableRow row{{name}, "", {""}};
      for (const std::string& column : columns_) {
        const auto cell = cells_.find({name, column});
        const bool measured = cell != cells_.end();
        row.cells.push_back(measured ? Value(cell->second, Format::kPercent) : "–");
        row.cell_css.push_back(measured ? HeatCss(cell->second.Number()) : "heat");
      }
      rows.push_back(std::move(row));
    }
    return Table(label, header, rows);
  }

 private:
  std::vector<std::string> rows_, columns_;
  std::map<std::pair<std::string, std::string>, Record> cells_;
};

std::string TaskHtml(const std::string& task) { return HtmlCut(MethodLabel(task), 24); }

std::string LengthHeading(double length) { return FormatNumber(length, Format::kCount); }

Grid TasksByLength(const Record& needle) {
  Grid grid;
  for (const Record& entry : needle["by_task"].Items()) {
    grid.Set(TaskHtml(entry["task"].Text()), LengthHeading(entry["length"].Number()),
             entry["accuracy"]);
  }
  return grid;
}

// Rows in order from the top of the text to its end.
Grid DepthsByLength(const Record& needle) {
  Grid grid;
  if (!needle.Has("by_length_depth")) return grid;
  for (const Record& entry : needle["by_length_depth"].Items()) {
    const auto percent = [&](const char* key) {
      return FormatNumber(entry[key].Number(), Format::kCount);
    };
    grid.Set(fmt::format("{} to {} %", percent("depth_from"), percent("depth_to")),
             LengthHeading(entry["length"].Number()), entry["accuracy"]);
  }
  return grid;
}

Grid ArmsByTask(const std::vector<ArmLook>& arms, double length) {
  Grid grid;
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("needle")) continue;
    for (const Record& entry : look.arm["needle"]["by_task"].Items()) {
      if (entry["length"].Number() == length)
        grid.Set(ArmNameHtml(look), TaskHtml(entry["task"].Text()), entry["accuracy"]);
    }
  }
  return grid;
}

LineChart AccuracyChart(const char* id, const char* title, const char* x_label) {
  LineChart chart;
  chart.id = id;
  chart.title = title;
  chart.description = "Accuracy of each configuration as a line.";
  chart.x_label = x_label;
  chart.y_label = "answers right";
  chart.y_scale = Scale::kLinear;
  chart.y_range = Range(Scale::kLinear);
  chart.percent = true;
  return chart;
}

std::string LengthChart(const std::vector<ArmLook>& arms) {
  LineChart chart = AccuracyChart("needle-length", "By length", "length of the text, tokens");
  chart.tokens = true;
  chart.x_scale = Scale::kLog;
  std::set<double> lengths;
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("needle")) continue;
    const Record by_length = look.arm["needle"]["by_length"];
    ChartSeries series{look.chart_label, look.line_css, {}, by_length.pointer(), "accuracy", true};
    for (const Record& entry : by_length.Items()) {
      series.points.push_back({entry["length"].Number(), entry["accuracy"].Number()});
      lengths.insert(entry["length"].Number());
    }
    chart.series.push_back(std::move(series));
  }
  if (lengths.size() < 2) return {};
  chart.x_ticks.assign(lengths.begin(), lengths.end());
  return RenderLineChart(chart);
}

std::string DepthChart(const std::vector<ArmLook>& arms) {
  LineChart chart =
      AccuracyChart("needle-depth", "By depth of the needle", "depth of the needle, % of the text");
  size_t buckets = 0;
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("needle")) continue;
    const Record by_depth = look.arm["needle"]["by_depth"];
    buckets = std::max(buckets, by_depth.size());
    ChartSeries series{look.chart_label, look.line_css, {}, by_depth.pointer(), "accuracy", true};
    for (const Record& entry : by_depth.Items()) {
      series.points.push_back({(entry["depth_from"].Number() + entry["depth_to"].Number()) / 2,
                               entry["accuracy"].Number()});
    }
    chart.series.push_back(std::move(series));
  }
  if (buckets < 2) return {};
  chart.x_ticks = {0, 25, 50, 75, 100};
  return RenderLineChart(chart);
}

// Returns the arms with the same windows as the headline arm, and the reference. More arms would
// not be legible.
std::vector<ArmLook> Drawn(const std::vector<ArmLook>& arms) {
  std::vector<ArmLook> drawn;
  for (const ArmLook& look : arms) {
    if (look.windows == HeadlineOf(arms).windows || look.css == "sr") drawn.push_back(look);
  }
  return drawn;
}

// Lists tasks that the model fails even with an exact cache, so they say nothing about caches.
std::string LeftOut(const Record& validation) {
  if (!validation.Has("recall")) return {};
  std::string list;
  for (const Record& task : validation["recall"]["tasks"].Items()) {
    if (task["counts"].True()) continue;
    list += fmt::format("{}{} at {} tokens ({})", list.empty() ? "" : ", ",
                        TaskHtml(task["task"].Text()), Value(task["length"], Format::kCount),
                        Value(task["exact"], Format::kPercent));
  }
  if (list.empty()) return {};
  return Note((validation["recall"]["measurable"].True()
                   ? "Not counted, because the model gives fewer than nine of ten answers even "
                     "with an exact cache: "
                   : "Recall cannot be measured on this model, because even with an exact cache it "
                     "gives fewer than nine of ten answers in every task: ") +
              list + ".");
}

}  // namespace

std::string NeedleSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  const ArmLook& headline = HeadlineOf(arms);
  const std::string left_out = LeftOut(report["validation"]);
  if (!headline.arm.Has("needle")) return left_out;
  const Record needle = headline.arm["needle"];
  double longest = 0, samples = 0;
  for (const Record& entry : needle["by_task"].Items()) {
    longest = std::max(longest, entry["length"].Number());
    samples = std::max(samples, entry["samples"].Number());
  }
  const std::vector<ArmLook> drawn = Drawn(arms);
  std::string html = Note(fmt::format(
      "Facts hidden in long texts, after RULER’s recipe, scored by teacher forcing: an answer is "
      "right if every token of it is the most likely one. The task “passages” hides random tokens "
      "in the model’s own words; an answer is right if it is likelier than the tokens of the other "
      "passages. Samples per task and length: {}.",
      FormatNumber(samples, Format::kCount)));
  html += left_out;
  html += FigureRow(LengthChart(drawn) + DepthChart(drawn));
  if (const Grid grid = TasksByLength(needle); !grid.empty()) {
    html += fmt::format("<h3>{}: tasks by length, in tokens</h3>\n", Html(headline.label));
    html += grid.Render("Needle accuracy by task and length", "task");
  }
  if (const Grid grid = DepthsByLength(needle); !grid.empty()) {
    html += fmt::format("<h3>{}: depth of the needle by length, in tokens</h3>\n",
                        Html(headline.label));
    html += grid.Render("Needle accuracy by depth and length", "depth");
  }
  if (const Grid grid = ArmsByTask(arms, longest); !grid.empty()) {
    html += fmt::format("<h3>All configurations at {} tokens</h3>\n", LengthHeading(longest));
    html += grid.Render("Needle accuracy by configuration and task", "configuration");
  }
  return html;
}

}  // namespace oscar
