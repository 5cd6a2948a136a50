// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares several models on one page, by the arms (measured configurations) of their validations.
// Trap: arms are matched by name only, so reports with different windows, lengths or seeds are not
// comparable. The page lists settings that differ.
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

// Returns {"$schema": {name, version}, "models": [{"source", "model", "validation"}]}: the
// validations of the reports without values per layer, head or position. Throws InputError if there
// are no reports, or if one is invalid or has no validation.
Json CombineReports(const std::vector<NamedReport>& reports);

// Makes a self-contained page from the result of CombineReports.
std::string ComparisonPage(const Json& comparison);

}  // namespace oscar
