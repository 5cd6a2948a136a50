// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows all arms side by side: their errors with intervals, and the distribution of the KL.
#include <fmt/format.h>

#include "export/report/arm_table.h"
#include "export/report/html.h"
#include "export/report/row_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

std::string DistributionTable(const std::vector<ArmLook>& arms) {
  std::vector<TableRow> rows;
  for (const ArmLook& look : arms) {
    const Record local = look.arm["local"], kl = local["kl"], worst = local["worst"];
    TableRow row{{ArmNameHtml(look)}, ArmRowCss(look)};
    for (const char* key : {"mean", "median", "p90", "p99", "max"})
      row.cells.push_back(Value(kl[key], Format::kError));
    row.cells.push_back(Value(local["kl_all"], Format::kError));
    for (const char* key : {"inside_windows", "beyond_windows"}) {
      row.cells.push_back(local[key]["rows"].Number() > 0 ? Value(local[key]["kl"], Format::kError)
                                                          : kNoNumber);
    }
    row.cells.push_back(fmt::format(
        "{}<small>layer {}, KV head {}</small>", Value(worst["kl"], Format::kError),
        Value(worst["layer_id"], Format::kCount), Value(worst["kv_head"], Format::kCount)));
    rows.push_back(std::move(row));
  }
  return Table("Distribution of attention-KL",
               {"attention-KL at fixed inputs", "mean", "median", "90 %", "99 %", "largest",
                "all rows", "inside windows", "beyond windows", "worst head"},
               rows);
}

std::string BehindTable(const std::vector<ArmLook>& arms) {
  std::vector<TableRow> rows;
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("behind")) continue;
    const Record behind = look.arm["behind"];
    rows.push_back({{ArmNameHtml(look), EstimateCell(behind, "local"), EstimateCell(behind, "text"),
                     EstimateCell(behind, "own_words")},
                    ArmRowCss(look)});
  }
  if (rows.empty()) return {};
  return Note(
             "How much more KL each configuration has than the one in bold, on the same pieces of "
             "text: paired differences, with 95 % intervals from resampling sequences and pieces "
             "in each. Above zero, the configuration in bold is better; if an interval contains "
             "zero, the two cannot be told apart.") +
         Table(
             "Differences to the headline",
             {"minus the one in bold", "attention-KL", "next-token KL", "next-token KL, own words"},
             rows);
}

std::string Legend(const std::vector<ArmLook>& arms) {
  std::string html = "<details><summary>Description of the configurations</summary><dl>\n";
  for (const ArmLook& look : arms) {
    html += fmt::format("<dt>{}</dt><dd>{} <code>{}</code></dd>\n", Html(look.label),
                        Html(look.arm["description"].Text()), Html(look.arm["name"].Text()));
  }
  return html + "</dl></details>\n";
}

// Draws `measure`, a mean KL, as a dot for each arm that has it, and the mean of `carried` as a
// ring.
RowChart KlChart(const std::vector<ArmLook>& arms, const Measure& measure, const Measure* carried) {
  RowChart chart;
  chart.scale = Scale::kLog;
  chart.x_label = fmt::format("{}, nats, log scale", measure.heading);
  for (const ArmLook& look : arms) {
    const std::optional<Record> mean = look.arm.Find(measure.path);
    if (!mean) continue;
    ChartRow row{look.label, look.css + (look.headline ? " strong" : ""), "", {}};
    row.numbers = FormatNumber(mean->Number(), measure.format);
    ChartMark mark{ChartMark::kDot, *mean};
    if (const auto interval = look.arm.Find(measure.interval())) mark.interval = *interval;
    if (const auto ring = carried ? look.arm.Find(carried->path) : std::nullopt) {
      row.numbers += " · " + FormatNumber(ring->Number(), carried->format);
      row.marks.push_back({ChartMark::kRing, *ring});
    }
    row.marks.push_back(std::move(mark));
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

RowChart AttentionChart(const std::vector<ArmLook>& arms) {
  RowChart chart = KlChart(arms, MeasureNamed("kl"), &MeasureNamed("e2e_kl"));
  chart.id = "arms-kl";
  chart.title = "Error of attention, by configuration";
  chart.description =
      "Mean attention-KL of every configuration on a logarithmic axis; the table above has the "
      "numbers.";
  chart.note = AnyArmHas(arms, "end_to_end")
                   ? "Filled: every layer at the unquantized model's inputs, with its 95 % "
                     "interval. Ring: with the configuration's own errors carried along."
                   : "Every layer at the unquantized model's inputs, with its 95 % interval.";
  return chart;
}

RowChart TokenChart(const std::vector<ArmLook>& arms) {
  RowChart chart = KlChart(arms, MeasureNamed("token_kl"), nullptr);
  chart.id = "arms-token";
  chart.title = "Error of the prediction, by configuration";
  chart.note = "The error that remains in the next token's distribution, with its 95 % interval.";
  chart.description =
      "Mean KL of the next-token distribution of every configuration on a logarithmic axis; the "
      "methods table has the numbers.";
  return chart;
}

}  // namespace

std::string ArmsSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  std::string html =
      FigureRow(RenderRowChart(AttentionChart(arms)) + RenderRowChart(TokenChart(arms)));
  bool null_controls = false;
  for (const ArmLook& look : arms) null_controls = null_controls || look.null_control;
  if (null_controls) {
    html += Note(
        "Null controls are rotations without any knowledge of this layer. If one does as well as "
        "the configuration in bold, fitting gained nothing here.");
  }
  html += BehindTable(arms) + DistributionTable(arms);
  return html + Legend(arms);
}

}  // namespace oscar
