// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --combine: reports of several models to one page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace oscar {

inline constexpr const char* kComparisonFile = "comparison.json";
inline constexpr const char* kComparisonPageFile = "comparison.html";

// Reads reports: files, or directories (an artifact, an output of oscar-validate) with a
// report.json. Writes both files to the new directory `output`. Throws InputError for what is no
// report or was not validated. Returns the page's path.
std::filesystem::path CombineReportFiles(const std::vector<std::string>& sources,
                                         const std::filesystem::path& output);

}  // namespace oscar
