// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the choice at each bit budget with published methods and the cache types of released
// servers: their next-token KL, and how many requests fit on a device.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "export/report/arm_table.h"
#include "export/report/capacity.h"
#include "export/report/html.h"
#include "export/report/scatter_chart.h"
#include "export/report/sections.h"
#include "export/report/verdict.h"

namespace oscar {
namespace {

struct BudgetRow {
  ArmLook look;
  Record bits;
  std::string label, css, loaded_by;  // text
};

std::vector<BudgetRow> BudgetRowsOf(const Record& validation, const std::string& member) {
  std::vector<BudgetRow> rows;
  for (const ArmLook& look : LookOfArms(validation)) {
    if (look.null_control || !look.arm.Has("capacity") || !look.arm.Has(member)) continue;
    BudgetRow row{look, BitsHeld(look.arm, validation), look.label, "s4", ""};
    if (look.arm["capacity"].Has("budget")) {
      row.label = fmt::format("chosen at {:g} bits", look.arm["capacity"]["budget"].Number());
      row.css = "s0";
      row.loaded_by = "oscar-kv";
    } else if (const ReleasedType* type = FindReleasedType(look.arm["method"].Text())) {
      row.css = "s2";
      row.loaded_by = type->server;
    }
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, {}, [](const BudgetRow& row) { return row.bits.Number(); });
  return rows;
}

std::string BudgetChart(const std::vector<BudgetRow>& rows, const std::string& member) {
  ScatterChart chart;
  chart.id = "bits-token";
  chart.title = "Next-token KL against bits";
  chart.note =
      "The choice at each budget, cache types of released servers and the other methods, each "
      "group in its own color, with 95 % intervals. Filled and named: nothing else has both fewer "
      "bits and less error.";
  chart.description =
      "Every cache as a point, with bits per element on the horizontal axis and next-token KL on "
      "the vertical axis, both logarithmic; the table below has the numbers.";
  chart.x_label = "bits per element, stored";
  chart.y_label = "next-token KL, nats";
  chart.x_ticks = {2, 2.5, 3, 4, 5, 6, 8, 12, 16};
  for (const BudgetRow& row : rows) {
    const Record kl = row.look.arm[member]["token_kl"];
    ScatterPoint point{
        .x = row.bits,
        .y = kl["mean"],
        .name = row.label,
        .label = row.css == "s0" ? row.label : MethodLabel(row.look.arm["method"].Text()),
        .css = row.css};
    if (kl.Has("interval")) point.interval = kl["interval"];
    chart.points.push_back(std::move(point));
  }
  return RenderScatterChart(chart);
}

std::string GateCell(const Record& capacity) {
  if (!capacity.Has("passes_gate")) return "";
  return capacity["passes_gate"].True() ? "<span class=\"pass\">✓ passes</span>"
                                        : "<span class=\"fail\">✗ fails</span>";
}

std::string BudgetTable(const std::vector<BudgetRow>& rows, const std::string& member) {
  std::vector<std::string> header = {"cache", "loaded by", "bits", "next-token KL"};
  for (const Record& held : rows.front().look.arm["capacity"]["held"].Items())
    header.push_back("at " + Value(held["tokens"], Format::kCount) + " tokens");
  header.insert(header.end(), {"requests", "gate"});
  std::vector<TableRow> table;
  for (const BudgetRow& row : rows) {
    const Record capacity = row.look.arm["capacity"];
    TableRow cells{{fmt::format("<span class=\"name\"><span class=\"swatch {}\"></span>{}</span>",
                                row.css, Html(row.label)),
                    Html(row.loaded_by), Value(row.bits, Format::kBits),
                    EstimateCell(row.look.arm[member], "token_kl")},
                   row.css == "s0" ? "headline" : "",
                   {"", "text"}};
    for (const Record& held : capacity["held"].Items())
      cells.cells.push_back(Value(held["bytes"], Format::kGigabytes));
    cells.cells.push_back(Value(capacity["requests"], Format::kCount));
    cells.cells.push_back(GateCell(capacity));
    table.push_back(std::move(cells));
  }
  return Table("Size and error at each number of bits", header, table);
}

}  // namespace

std::string BudgetsSection(const Record& report) {
  if (!report.Has("validation") || !report["validation"].Has("capacity")) return {};
  const Record validation = report["validation"], capacity = validation["capacity"];
  const std::string member = VerdictMember(validation);
  const std::vector<BudgetRow> rows = BudgetRowsOf(validation, member);
  if (rows.empty()) return {};
  return BudgetChart(rows, member) + BudgetTable(rows, member) +
         Note(
             fmt::format("Bits: every stored byte, including windows in 16 bits, in requests of {} "
                         "tokens. Requests: how many of that length fit on {} in addition to the "
                         "model’s weights in bf16, {}, if nothing else is stored there. Next-token "
                         "KL is measured on {}. To export a choice, use <code>oscar-export "
                         "ARTIFACT --to oscar-torch --bits B -o DIRECTORY</code>.",
                         Value(capacity["request_tokens"], Format::kCount),
                         Value(capacity["device_bytes"], Format::kGigabytes),
                         Value(capacity["weight_bytes"], Format::kGigabytes),
                         member == "text" ? "the held-out text" : "the model’s own words"));
}

}  // namespace oscar
