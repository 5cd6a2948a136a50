// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Several models on one page: what their validations have in common, side by side. Trap: arms are
// matched by name, so two reports with other windows, lengths or seeds compare apples with pears;
// settings that differ are named on the page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

inline constexpr std::string_view kComparisonSchema = "oscar-comparison";
inline constexpr int kComparisonVersion = 1;

struct NamedReport {
  std::string source;  // where it was read, for messages
  Json report;
  double date = 0;  // of its file, in seconds since 1970
};

// {"$schema": {name, version}, "models": [{"source", "model", "validation"}]}: the reports'
// validations without what stands per layer, head or position. Throws InputError for what is no
// report, a report that was not validated, or none at all.
Json CombineReports(const std::vector<NamedReport>& reports);

// One self-contained page of what CombineReports gave.
std::string ComparisonPage(const Json& comparison);

}  // namespace oscar
