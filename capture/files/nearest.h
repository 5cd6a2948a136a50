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

// Returns how many insertions, deletions, substitutions and swaps of neighbours turn `a` into `b`,
// by bytes and ignoring case (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b);

// Returns up to three members of `known` with the smallest distances, nearest first and in their
// order on ties, as "a, b, c". If `name` has three or more letters, a name that contains it is
// nearer than any other.
std::string Nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace oscar
