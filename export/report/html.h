// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the page: text, numbers, tables. Trap: a function that takes "html" takes markup and
// trusts it; names, descriptions and other text of the record go through Html() first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/measures/table.h"  // Format
#include "export/report/record.h"

namespace oscar {

// Text as markup: & < > " ' escaped, control characters made visible.
std::string Html(std::string_view text);

// The same, cut to `max_characters` (UTF-8) with an ellipsis: for labels in charts.
std::string HtmlCut(std::string_view text, size_t max_characters);
size_t CountCharacters(std::string_view utf8);

std::string FormatNumber(double value, Format format);

// <data> with the printed number, the exact one (value=) and where it stands (data-path=).
std::string Value(const Record& number, Format format);
// "lo to hi" of a two-element array.
std::string Interval(const Record& interval, Format format, std::string_view between = " to ");
// data-path and data-value attributes, for marks in charts.
std::string DataAttributes(const Record& number);

struct TableRow {
  std::vector<std::string> cells;          // html; the first one heads the row
  std::string css;                         // classes of the row
  std::vector<std::string> cell_css = {};  // classes per cell, or empty
};

// In a box of its own that scrolls if it must; `label` (text) names it for those who cannot see it.
std::string Table(std::string_view label, const std::vector<std::string>& header_html,
                  const std::vector<TableRow>& rows);

// A paragraph of explanation in the muted voice.
std::string Note(std::string_view html);

}  // namespace oscar
