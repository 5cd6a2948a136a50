// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the page: text, numbers, tables. Trap: a function that takes "html" takes markup and
// trusts it; names, descriptions and other text of the record go through Html() first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/report/record.h"

namespace oscar {

// Text as markup: & < > " ' escaped, control characters made visible.
std::string Html(std::string_view text);

// The same, cut to `max_characters` (UTF-8) with an ellipsis: for labels in charts.
std::string HtmlCut(std::string_view text, size_t max_characters);
size_t CountCharacters(std::string_view utf8);

// How a kind of number is printed, everywhere on the page. A zero is "0".
enum class Format {
  kError,       // KL in nats, relative errors: 0.0391, 0.00253, below 0.001 3.2e-05
  kPerplexity,  // 2.4715, ratios too
  kPercent,     // a fraction: 97.0 %
  kBits,        // bits per element, clip ratios: 2.38
  kCount,       // 18 420, thin spaces
  kInvariant,   // 3.1e-15
  kGigabytes,   // bytes: 1.21 GB
};
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
