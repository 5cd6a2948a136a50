// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --combine: from finished reports makes a page, a spreadsheet, a table for a README,
// and the files of --write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

inline constexpr const char* kComparisonFile = "comparison.json";
inline constexpr const char* kComparisonPageFile = "comparison.html";
inline constexpr const char* kComparisonCsvFile = "comparison.csv";
inline constexpr const char* kComparisonTableFile = "comparison.md";

struct CombineOptions {
  std::vector<std::string> sources;     // reports, or directories with a report.json (artifacts,
                                        // outputs of oscar-validate)
  std::filesystem::path output;         // a new directory; empty: only `csv` and `write`
  std::string csv;                      // path of another copy of comparison.csv, or empty
  std::string write;                    // directory for WriteReportFiles, or empty
  std::vector<std::string> table_rows;  // names of arms (ComparisonMarkdown)
  std::string table_into;               // a file with markers around the table, or empty
};

// Writes comparison.csv for one report to `path`. Throws InputError.
void WriteReportCsv(const std::string& source, const Json& report,
                    const std::filesystem::path& path);

// Writes the CSV to `csv` and the report files to `write`, if given. If `output` is given, writes
// the four comparison files there and the table into `table_into`. Throws InputError for a file
// that is not a report or was not validated. Returns the path of comparison.html. Without `output`,
// returns `write`, or `csv` if `write` is empty.
std::filesystem::path CombineReportFiles(const CombineOptions& options);

}  // namespace oscar
