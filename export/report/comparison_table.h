// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The contents of comparison.json, for spreadsheets and for a README. Each run replaces the
// README's text between the two marks, so do not edit it by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// Returns a row per model and arm and a column per number, with all digits. A cell is empty if the
// arm was not measured. The last columns are seed, text and commit of the run. Strings are quoted
// as in RFC 4180; numbers are not.
std::string ComparisonCsv(const Json& comparison);

// Returns two tables with a row per arm: the arms named in `rows`, in that order, then a folded
// table of all others in the order of the reports. Between them it lists the arms that no arm beats
// in both stored bits and next-token KL. A model's cell has attention-KL, next-token KL and
// perplexity. Bits are those of all models, in the models' order if they differ. Throws UsageError
// for a row that no report has. Empty `rows`: all arms are in the first table.
std::string ComparisonMarkdown(const Json& comparison, const std::vector<std::string>& rows);

// Marks in a Markdown page, between which the table is put.
inline constexpr std::string_view kTableBegin = "<!-- oscar-validate --combine: begin -->\n";
inline constexpr std::string_view kTableEnd = "<!-- oscar-validate --combine: end -->\n";

// Returns `page` with `table` between its marks. Throws InputError naming `source` if it does not
// have each mark once, in order.
std::string WithTable(std::string_view page, std::string_view table, std::string_view source);

}  // namespace oscar
