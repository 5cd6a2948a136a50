// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The known name a misspelt one most likely meant. Trap: tools/cli has the same for options, but
// stands above this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace oscar {

// The member of `known` with the fewest insertions, deletions and substitutions of bytes; the first
// on ties, "" if there is none.
std::string NearestName(std::string_view name, std::span<const std::string> known);

}  // namespace oscar
