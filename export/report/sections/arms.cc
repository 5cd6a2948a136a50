// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// All arms side by side: one chart, one table of what matters, one of how the KL is distributed.
#include <fmt/format.h>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/row_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr const char* kNothing = "–";

bool AnyHas(const std::vector<ArmLook>& arms, std::string_view member) {
  for (const ArmLook& look : arms) {
    if (look.arm.Has(member)) return true;
  }
  return false;
}

std::string WithInterval(const Record& holder, std::string_view mean, std::string_view interval,
                         Format format) {
  std::string html = Value(holder[mean], format);
  if (holder.Has(interval))
    html += "<small>" + Interval(holder[interval], format, "–") + "</small>";
  return html;
}

// A column of the arm table: present where one arm has its member.
struct Column {
  const char* heading;
  const char* member;  // of the arm
  std::string (*cell)(const Record& member);
};

constexpr Column kColumns[] = {
    {"attention-KL", "local",
     [](const Record& m) { return WithInterval(m["kl"], "mean", "interval", Format::kError); }},
    {"end to end", "end_to_end",
     [](const Record& m) { return WithInterval(m["kl"], "mean", "interval", Format::kError); }},
    {"output error", "local",
     [](const Record& m) { return Value(m["output_rel_error"], Format::kError); }},
    {"perplexity", "text",
     [](const Record& m) {
       return WithInterval(m, "perplexity", "perplexity_interval", Format::kPerplexity);
     }},
    {"ratio", "text",
     [](const Record& m) {
       return WithInterval(m, "ppl_ratio", "ppl_ratio_interval", Format::kPerplexity);
     }},
    {"token KL", "text",
     [](const Record& m) { return Value(m["token_kl"]["mean"], Format::kError); }},
    {"same token", "text",
     [](const Record& m) { return Value(m["top1_agreement"], Format::kPercent); }},
    {"needle", "needle", [](const Record& m) { return Value(m["accuracy"], Format::kPercent); }},
    {"bits", "bits_per_element", [](const Record& m) { return Value(m["paper"], Format::kBits); }},
};

std::string ArmTable(const std::vector<ArmLook>& arms) {
  std::vector<std::string> header = {"arm"};
  for (const Column& column : kColumns) {
    if (AnyHas(arms, column.member)) header.emplace_back(column.heading);
  }
  std::vector<TableRow> rows;
  for (const ArmLook& look : arms) {
    TableRow row{{ArmNameHtml(look)}, ArmRowCss(look)};
    for (const Column& column : kColumns) {
      if (!AnyHas(arms, column.member)) continue;
      row.cells.push_back(look.arm.Has(column.member) ? column.cell(look.arm[column.member])
                                                      : kNothing);
    }
    rows.push_back(std::move(row));
  }
  return Table("All arms", header, rows);
}

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
                                                          : kNothing);
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

std::string Legend(const std::vector<ArmLook>& arms) {
  std::string html = "<details><summary>What the arms are</summary><dl>\n";
  for (const ArmLook& look : arms) {
    html += fmt::format("<dt>{}</dt><dd>{} <code>{}</code></dd>\n", Html(look.label),
                        Html(look.arm["description"].Text()), Html(look.arm["name"].Text()));
  }
  return html + "</dl></details>\n";
}

RowChart AttentionChart(const std::vector<ArmLook>& arms) {
  RowChart chart;
  chart.id = "arms-kl";
  chart.title = "Error of attention, by arm";
  chart.scale = Scale::kLog;
  chart.x_label = "KL(S‖Ŝ), nats, log scale";
  chart.description =
      "Mean attention-KL of every arm on a logarithmic axis; the numbers stand in "
      "the table below.";
  const bool end_to_end = AnyHas(arms, "end_to_end");
  chart.note = end_to_end
                   ? "Filled: every layer at the unquantized model's inputs, with its 95 % "
                     "interval. Ring: with the arm's own errors carried along."
                   : "Every layer at the unquantized model's inputs, with its 95 % interval.";
  for (const ArmLook& look : arms) {
    const Record kl = look.arm["local"]["kl"];
    ChartRow row{look.label, look.css + (look.headline ? " strong" : ""), "", {}};
    row.numbers = FormatNumber(kl["mean"].Number(), Format::kError);
    ChartMark local{ChartMark::kDot, kl["mean"]};
    if (kl.Has("interval")) local.interval = kl["interval"];
    if (look.arm.Has("end_to_end")) {
      const Record carried = look.arm["end_to_end"]["kl"]["mean"];
      row.numbers += " · " + FormatNumber(carried.Number(), Format::kError);
      row.marks.push_back({ChartMark::kRing, carried});
    }
    row.marks.push_back(std::move(local));
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

RowChart TokenChart(const std::vector<ArmLook>& arms) {
  RowChart chart;
  chart.id = "arms-token";
  chart.title = "Error of the prediction, by arm";
  chart.note = "What is left of it in the next token's distribution, with its 95 % interval.";
  chart.scale = Scale::kLog;
  chart.x_label = "KL of the next token, nats, log scale";
  chart.description =
      "Mean KL of the next-token distribution of every arm on a logarithmic axis; "
      "the numbers stand in the table below.";
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("text")) continue;
    const Record kl = look.arm["text"]["token_kl"];
    ChartMark mark{ChartMark::kDot, kl["mean"]};
    if (kl.Has("interval")) mark.interval = kl["interval"];
    chart.rows.push_back({look.label,
                          look.css + (look.headline ? " strong" : ""),
                          FormatNumber(kl["mean"].Number(), Format::kError),
                          {std::move(mark)}});
  }
  return chart;
}

}  // namespace

std::string ArmsSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  std::string html =
      FigureRow(RenderRowChart(AttentionChart(arms)) + RenderRowChart(TokenChart(arms)));
  html += ArmTable(arms);
  bool null_controls = false;
  for (const ArmLook& look : arms) null_controls = null_controls || look.null_control;
  html += Note(
      "Lower is better, except “same token” (how often the most likely token stays the same) and "
      "“needle”. Attention-KL: KL(S‖Ŝ) of the attention rows of the second half of each sequence, "
      "mean over heads and layers, in nats. Output error: relative Frobenius norm. Small print: 95 "
      "% bootstrap intervals over pieces of sequences.");
  if (null_controls) {
    html += Note(
        "Null controls are rotations that know nothing of this layer. One that does as "
        "well as the arm in bold means that fitting bought nothing here.");
  }
  html += DistributionTable(arms);
  return html + Legend(arms);
}

}  // namespace oscar
