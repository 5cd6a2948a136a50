// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares several models on one page by what their validations have in common. Trap: arms are
// matched by name, so reports with different windows, lengths or seeds are not comparable; the page
// names settings that differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

inline constexpr std::string_view kComparisonSchema = "oscar-comparison";
inline constexpr int kComparisonVersion = 1;

struct NamedReport {
  std::string source;  // path of the report, for messages
  Json report;
  double date = 0;  // date of the file, in seconds since 1970
};

// Returns {"$schema": {name, version}, "models": [{"source", "model", "validation"}]}: the reports'
// validations without values per layer, head or position. Throws InputError if one is not a report
// or was not validated, or if there are none.
Json CombineReports(const std::vector<NamedReport>& reports);

// Makes a self-contained page from the result of CombineReports.
std::string ComparisonPage(const Json& comparison);

}  // namespace oscar
