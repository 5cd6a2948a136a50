// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the bits per element of each arm, by the paper's formula and by the bytes really used.
#include <fmt/format.h>

#include <set>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/row_chart.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {

std::string MemorySection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  RowChart chart;
  chart.id = "memory";
  chart.title = "Bits per element of the cache";
  chart.note = "Bar: stored bytes. Mark: the paper’s formula. Numbers: formula · stored.";
  chart.description =
      "Bits per cached element of each configuration as bars from zero; BF16 takes 16.";
  chart.x_label = "bits per element";
  std::set<std::string> notes;
  std::vector<TableRow> rows;
  for (const ArmLook& look : arms) {
    const Record bits = look.arm["bits_per_element"];
    chart.rows.push_back(
        {look.label,
         look.css + (look.headline ? " strong" : ""),
         fmt::format("{} · {}", FormatNumber(bits["paper"].Number(), Format::kBits),
                     FormatNumber(bits["actual"].Number(), Format::kBits)),
         {{ChartMark::kBar, bits["actual"]}, {ChartMark::kTick, bits["paper"]}}});
    if (bits.IsText("note")) notes.insert(bits["note"].Text());
    rows.push_back({{ArmNameHtml(look), Value(bits["paper"], Format::kBits),
                     Value(bits["actual"], Format::kBits), Value(bits["tokens"], Format::kCount)},
                    ArmRowCss(look)});
  }
  std::string html = Note(
      "The paper counts b bits, a 16-bit scale and zero per quantization group, and the 16-bit "
      "windows spread over the context: 2 + 32/g + (16 − 2 − 32/g)·(sink + recent)/L. “Stored” "
      "counts every byte, including metadata in its real type and padding.");
  for (const std::string& note : notes) html += Note(Html(note));
  html += FigureRow(
      RenderRowChart(chart) + "<div>" +
      Table("Bits per element", {"configuration", "formula", "stored", "at tokens"}, rows) +
      "</div>\n");
  return html;
}

}  // namespace oscar
