// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the effect of each arm on tool calls whose arguments are far back in a conversation, by
// task.
#include <fmt/format.h>

#include "export/report/arm_look.h"
#include "export/report/html.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

// Returns "configuration", then a heading "task, length" for each row of `tool_call`.
std::vector<std::string> Header(const Record& tool_call) {
  std::vector<std::string> header = {"configuration"};
  for (const Record& row : tool_call["by_task"].Items()) {
    header.push_back(HtmlCut(MethodLabel(row["task"].Text()), 24) + ", " +
                     FormatNumber(row["length"].Number(), Format::kCount));
  }
  return header;
}

std::string TaskTable(const std::vector<ArmLook>& arms, const char* label, const char* member,
                      Format format) {
  std::vector<std::string> header;
  std::vector<TableRow> rows;
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("tool_call")) continue;
    const Record tool_call = look.arm["tool_call"];
    if (header.empty()) header = Header(tool_call);
    TableRow row{{ArmNameHtml(look)}, ArmRowCss(look)};
    for (const Record& task : tool_call["by_task"].Items())
      row.cells.push_back(Value(task[member], format));
    row.cells.resize(header.size(), "–");
    rows.push_back(std::move(row));
  }
  return fmt::format("<h3>{}</h3>\n", label) + Table(label, header, rows);
}

}  // namespace

std::string ToolCallSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  bool any = false;
  for (const ArmLook& look : arms) any = any || look.arm.Has("tool_call");
  if (!any) return {};
  std::string html = Note(
      "Conversations that end in a call whose arguments appear far earlier in the context: values "
      "copied from a result, values given under a name long before, or a document or line of code "
      "with one value changed. An argument is exact if every token of it is the most likely one. A "
      "task counts for exact match if the model gets nine of ten arguments right with an exact "
      "cache; the KL on the arguments’ tokens is meaningful for every model.");
  html += TaskTable(arms, "KL on arguments", "token_kl", Format::kError);
  return html + TaskTable(arms, "Exact arguments", "accuracy", Format::kPercent);
}

}  // namespace oscar
