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

// Number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`;
// bytes, case ignored (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b);

// The three members of `known` with the smallest distances, nearest first and in their order on
// ties, "a, b, c"; fewer if there are fewer. A name that contains `name`, of three letters or more,
// is nearer than any other.
std::string Nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace oscar
