// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the contents of comparison.json as CSV for spreadsheets and as Markdown for a README. Each
// run replaces the README's text between two marks, so do not edit that text by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// Returns CSV with a row per model and arm and a column per number, with all digits. A cell is
// empty if its number was not measured. The last columns describe the run, such as its seed, text
// and commit. Strings are quoted as in RFC 4180; numbers are not.
std::string ComparisonCsv(const Json& comparison);

// Returns two tables with a row per arm. The first has the arms named in `rows`, in that order. The
// second, which is folded, has all other arms in the order of the reports. If `rows` is empty, the
// first table has all arms.
//
// The list between the tables names the arms of each model that no other arm beats in both stored
// bits and next-token KL. A model's cell has attention-KL, next-token KL and perplexity. A cell of
// bits has the different values of all models. Throws UsageError for a row that no report has.
std::string ComparisonMarkdown(const Json& comparison, const std::vector<std::string>& rows);

// Marks in a Markdown page. The table is put between them.
inline constexpr std::string_view kTableBegin = "<!-- oscar-validate --combine: begin -->\n";
inline constexpr std::string_view kTableEnd = "<!-- oscar-validate --combine: end -->\n";

// Returns `page` with `table` between its marks. Throws InputError naming `source` if it does not
// have each mark once, in order.
std::string WithTable(std::string_view page, std::string_view table, std::string_view source);

}  // namespace oscar
