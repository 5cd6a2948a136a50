// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows every arm on each domain of the text, and so whether fitted rotations work on all kinds of
// text.
#include <fmt/format.h>

#include <algorithm>

#include "export/report/arm_table.h"  // kNoNumber
#include "export/report/html.h"
#include "export/report/row_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

constexpr size_t kMostCharts = 12;
constexpr size_t kDomainCharacters = 40;

// Makes bars for the arms on one domain. `member`: the value shown.
RowChart DomainChart(const std::vector<ArmLook>& arms, size_t domain, const char* member,
                     const Range& range) {
  RowChart chart;
  chart.id = fmt::format("domain-{}", domain + 1);
  chart.title = HtmlCut(arms[0].arm["by_domain"][domain]["domain"].Text(), kDomainCharacters);
  chart.scale = Scale::kLog;
  chart.range = range;
  chart.x_label = fmt::format("{} KL, nats, log scale",
                              member == std::string_view("text") ? "next-token" : "attention");
  chart.description =
      "The KL of every configuration on this domain as a bar on a logarithmic axis, which all "
      "domains share; the table below has the numbers.";
  for (const ArmLook& look : arms) {
    const Record row = look.arm["by_domain"][domain];
    if (!row.Has(member)) continue;
    ChartMark bar{ChartMark::kBar, row[member]["mean"]};
    if (row[member].Has("interval")) bar.interval = row[member]["interval"];
    chart.rows.push_back({look.label,
                          look.css + (look.headline ? " strong" : ""),
                          FormatNumber(row[member]["mean"].Number(), Format::kError),
                          {std::move(bar)}});
  }
  return chart;
}

// Makes a row for each domain and arm, so that any number of domains fits on a page.
std::string DomainTable(const std::vector<ArmLook>& arms, bool text) {
  std::vector<TableRow> rows;
  for (size_t i = 0; i < arms[0].arm["by_domain"].size(); ++i) {
    for (const ArmLook& look : arms) {
      const Record of = look.arm["by_domain"][i];
      TableRow row{{fmt::format("{}<small>{}</small>", ArmNameHtml(look),
                                HtmlCut(of["domain"].Text(), kDomainCharacters))},
                   ArmRowCss(look)};
      for (const char* member : {"local", "text"}) {
        if (!text && member == std::string_view("text")) continue;
        row.cells.push_back(of.Has(member) ? Value(of[member]["rows"], Format::kCount) : kNoNumber);
        row.cells.push_back(EstimateCell(of, member));
        row.cells.push_back(of.Has("behind") ? EstimateCell(of["behind"], member) : kNoNumber);
      }
      rows.push_back(std::move(row));
    }
  }
  std::vector<std::string> header = {"configuration, domain", "rows", "attention-KL",
                                     "minus the one in bold"};
  if (text) header.insert(header.end(), {"tokens", "next-token KL", "minus the one in bold"});
  return "<details><summary>All numbers</summary>\n" +
         Table("Configurations by domain", header, rows) + "</details>\n";
}

}  // namespace

std::string DomainsSection(const Record& report) {
  if (!report.Has("validation")) return {};
  std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  const size_t domains =
      HeadlineOf(arms).arm.Has("by_domain") ? HeadlineOf(arms).arm["by_domain"].size() : 0;
  std::erase_if(arms, [&](const ArmLook& look) {
    return look.css == "sr" || !look.arm.Has("by_domain") ||
           look.arm["by_domain"].size() != domains;
  });
  if (domains == 0 || arms.empty()) return {};
  const bool text = AnyArmHas(arms, "text");
  const char* member = text ? "text" : "local";
  Range range(Scale::kLog);
  for (const ArmLook& look : arms) {
    for (const Record& domain : look.arm["by_domain"].Items()) {
      if (!domain.Has(member)) continue;
      range.Add(domain[member]["mean"].Number());
      if (!domain[member].Has("interval")) continue;
      for (const Record& end : domain[member]["interval"].Items()) range.Add(end.Number());
    }
  }
  std::string charts;
  for (size_t i = 0; i < std::min(domains, kMostCharts); ++i)
    charts += RenderRowChart(DomainChart(arms, i, member, range));
  return FigureRow(charts) + DomainTable(arms, text);
}

}  // namespace oscar
