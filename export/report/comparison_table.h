// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The contents of comparison.json, for spreadsheets and for a README. The README's text between the
// two marks is replaced whenever it is made anew; nothing is kept there by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// A row per model and arm, a column per number, each with every digit it has; empty where an arm
// was not measured; behind them seed, text and commit of the run. Strings are quoted as RFC 4180
// says, numbers are bare.
std::string ComparisonCsv(const Json& comparison);

// Two tables, a row per arm: those named in `rows`, in that order, and folded away below them all
// others in the order of the reports; between them the arms that no other has both fewer bits
// stored and less next-token KL than. A model's cell is attention-KL, next-token KL and perplexity;
// bits are those of all models, where they differ in the models' order. Throws UsageError for a row
// that no report has. No rows: all arms in the first table.
std::string ComparisonMarkdown(const Json& comparison, const std::vector<std::string>& rows);

// The marks between which a page of Markdown holds the table.
inline constexpr std::string_view kTableBegin = "<!-- oscar-validate --combine: begin -->\n";
inline constexpr std::string_view kTableEnd = "<!-- oscar-validate --combine: end -->\n";

// `page` with `table` between its marks. Throws InputError naming `source` if it does not hold each
// mark once, in order.
std::string WithTable(std::string_view page, std::string_view table, std::string_view source);

}  // namespace oscar
