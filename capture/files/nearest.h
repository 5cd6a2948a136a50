// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Suggests the known names that a misspelt one most likely meant, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

// Returns how many insertions, deletions, substitutions and swaps of neighbouring bytes turn `a`
// into `b`, ignoring case (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the members of `known` that are nearest to `name`, at most three and the nearest first,
// as "a, b, c". On ties, they keep their order. If `name` has three or more letters, members that
// contain it come before all others.
std::string Nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace oscar
