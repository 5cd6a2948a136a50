// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_table.h"

#include <algorithm>

#include "linalg/base/check.h"
#include "tools/cli/console.h"  // CountColumns

namespace oscar {

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
  AddRow(std::move(headings));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  OSCAR_CHECK_EQ(cells.size(), right_.size());
  for (std::string& cell : cells)
    for (char& c : cell)
      if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<int> widths(right_.size(), 0);  // in terminal columns
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], CountColumns(row[i]));
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(static_cast<size_t>(widths[i] - CountColumns(cells[i])), ' ');
      line += (i == 0 ? "" : "  ") + (right_[i] ? padding + cells[i] : cells[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(rows_[0]);
  std::vector<std::string> rule;
  for (const int width : widths) rule.emplace_back(static_cast<size_t>(width), '-');
  add_line(rule);
  for (size_t i = 1; i < rows_.size(); ++i) add_line(rows_[i]);
  return text;
}

}  // namespace oscar
