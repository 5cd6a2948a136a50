// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/arm_table.h"

#include <algorithm>
#include <numeric>

#include "export/report/html.h"

namespace oscar {
std::string MeasureCell(const Measure& measure, const Record& arm) {
  const std::optional<Record> number = arm.Find(measure.path);
  if (!number) return kNoNumber;
  std::string html = Value(*number, measure.format);
  if (!measure.Is(kSmallPrint)) return html;
  const std::optional<Record> interval = arm.Find(measure.interval());
  return interval ? html + "<small>" + Interval(*interval, measure.format, "–") + "</small>" : html;
}

std::string EstimateCell(const Record& holder, std::string_view member) {
  if (!holder.Has(member)) return kNoNumber;
  const Record estimate = holder[member];
  std::string html = Value(estimate["mean"], Format::kError);
  if (estimate.Has("interval"))
    html += "<small>" + Interval(estimate["interval"], Format::kError, "–") + "</small>";
  return html;
}

bool AnyArmHas(const std::vector<ArmLook>& arms, std::string_view member) {
  return std::ranges::any_of(arms, [&](const ArmLook& look) { return look.arm.Has(member); });
}

std::string ArmTable(const std::vector<ArmLook>& arms, const std::vector<bool>& on_front) {
  std::vector<std::string> header = {"configuration"};
  std::vector<Measure> columns = Measures(kPage);
  std::erase_if(columns, [&](const Measure& column) { return !AnyArmHas(arms, column.part()); });
  for (const Measure& column : columns) header.emplace_back(column.heading);
  std::vector<size_t> order(arms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return arms[i].arm["local"]["kl"]["mean"].Number(); });
  std::vector<TableRow> rows;
  for (const size_t i : order) {
    const ArmLook& look = arms[i];
    std::string name = ArmNameHtml(look);
    if (on_front[i]) name.insert(name.rfind("</span>"), " <span class=\"tag\">front</span>");
    TableRow row{{std::move(name)}, ArmRowCss(look)};
    for (const Measure& column : columns) row.cells.push_back(MeasureCell(column, look.arm));
    rows.push_back(std::move(row));
  }
  return Table("All configurations", header, rows);
}

}  // namespace oscar
