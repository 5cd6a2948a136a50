// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --combine: makes a page, a spreadsheet, a table for a README and the files of --write
// from finished reports.
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
  std::vector<std::string> sources;     // files, or directories (an artifact, an output of
                                        // oscar-validate) with a report.json
  std::filesystem::path output;         // a new directory; empty: none but `csv` and `write`
  std::string csv;                      // also write comparison.csv here; or empty
  std::string write;                    // WriteReportFiles into this directory; or empty
  std::vector<std::string> table_rows;  // arms, see ComparisonMarkdown
  std::string table_into;               // a file that holds the table between marks; or empty
};

// Writes the part of comparison.csv for one report to `path`. Throws InputError as above.
void WriteReportCsv(const std::string& source, const Json& report,
                    const std::filesystem::path& path);

// Writes the four files to the output directory, and the table into `table_into`. Throws InputError
// for a file that is not a report or was not validated. Returns the path of the page; without one,
// that of `write` or the CSV.
std::filesystem::path CombineReportFiles(const CombineOptions& options);

}  // namespace oscar
