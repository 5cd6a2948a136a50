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

// Returns the offset of the first byte outside a well-formed UTF-8 sequence (Unicode 15, table 3-7:
// no overlong forms, no surrogates, nothing above U+10FFFF); nothing if there is none.
std::optional<size_t> FirstInvalidUtf8(std::string_view text);

// Replaces each maximal ill-formed subsequence by one U+FFFD (Unicode 15, section 3.9, "U+FFFD
// Substitution of Maximal Subparts"), like Rust's from_utf8_lossy and browsers.
std::string ReplaceInvalidUtf8(std::string_view bytes);

// Returns the code point at byte `position` of valid text and moves `position` past it.
char32_t NextCodePoint(std::string_view text, size_t& position);

void AppendUtf8(char32_t code_point, std::string& out);

// Unicode property White_Space, stable since Unicode 6.3. PCRE2's \s differs for U+180E.
bool IsWhiteSpace(char32_t code_point);

}  // namespace oscar
