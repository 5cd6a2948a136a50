// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes tables of the supported model families, weight formats and tokenizers from the tables in
// the code. `doctor --tables --into FILE` replaces the text between two marks of the file with
// them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace oscar {

inline constexpr std::string_view kSupportBegin =
    "<!-- oscar-calibrate doctor --tables: begin -->\n";
inline constexpr std::string_view kSupportEnd = "<!-- oscar-calibrate doctor --tables: end -->\n";

std::string SupportTables();

// Returns the text of `page` with the tables between its marks. Throws InputError naming the file
// unless it has each mark once, in order.
std::string WithSupportTables(const std::filesystem::path& page);

}  // namespace oscar
