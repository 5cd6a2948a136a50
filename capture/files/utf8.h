// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 helpers. Trap: NextCodePoint() and its users trust their input; check text with
// FirstInvalidUtf8() first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace oscar {

// Offset in bytes of the first byte that does not belong to a well-formed UTF-8 sequence (Unicode
// 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF); nothing if all do.
std::optional<size_t> FirstInvalidUtf8(std::string_view text);

// Each maximal ill-formed subsequence becomes one U+FFFD (Unicode 15, section 3.9, "U+FFFD
// Substitution of Maximal Subparts"), as Rust's from_utf8_lossy and browsers do.
std::string ReplaceInvalidUtf8(std::string_view bytes);

// The code point that starts at byte `position` of valid text; `position` moves past it.
char32_t NextCodePoint(std::string_view text, size_t& position);

void AppendUtf8(char32_t code_point, std::string& out);

// Unicode property White_Space. Stable since Unicode 6.3; PCRE2's \s differs in U+180E.
bool IsWhiteSpace(char32_t code_point);

}  // namespace oscar
