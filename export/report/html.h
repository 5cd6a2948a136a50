// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of the page: text, numbers, tables. Trap: a parameter whose name ends in "html" is inserted
// as markup without escaping, so names, descriptions and other text of a report must go through
// Html() first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/measures/table.h"  // Format
#include "export/report/record.h"

namespace oscar {

// Returns text as markup: & < > " ' escaped, control characters made visible.
std::string Html(std::string_view text);

// Returns, for labels in charts, Html(text) of the first `max_characters` (UTF-8), followed by an
// ellipsis if text was cut.
std::string HtmlCut(std::string_view text, size_t max_characters);
size_t CountCharacters(std::string_view utf8);

std::string FormatNumber(double value, Format format);

// Returns <data> with the printed number, the exact number (value=) and its path in the report
// (data-path=).
std::string Value(const Record& number, Format format);
// Formats a two-element array as "lo to hi".
std::string Interval(const Record& interval, Format format, std::string_view between = " to ");
// Returns data-path and data-value attributes for marks in charts.
std::string DataAttributes(const Record& number);

struct TableRow {
  std::vector<std::string> cells;          // HTML; the first cell is the row's heading
  std::string css;                         // CSS classes of the row
  std::vector<std::string> cell_css = {};  // CSS classes of the cells, or empty
};

// Makes a table in a box that scrolls if necessary. `label` (text) names it for screen readers.
std::string Table(std::string_view label, const std::vector<std::string>& header_html,
                  const std::vector<TableRow>& rows);

// Makes a paragraph of explanation in a muted colour.
std::string Note(std::string_view html);

}  // namespace oscar
