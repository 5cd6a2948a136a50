// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Patterns of tokenizer.json are written for Oniguruma (Ruby syntax), and we run PCRE2. This
// translates the part of the syntax that tokenizers use and refuses the rest by name. Trap:
// constructs that look alike may differ silently: \s (U+180E), \w, \h, \v, {n}+ (repeated, not
// possessive), {,n}, [a&&b], (?m).
#pragma once

#include <string>
#include <string_view>

#include "capture/files/regex.h"

namespace oscar {

// Returns a PCRE2 pattern (for UTF, UCP, MULTILINE, newline = LF) with the same matches as the
// Oniguruma pattern. Throws InputError naming `where`, the construct and its byte offset.
std::string OnigurumaToPcre2(std::string_view pattern, std::string_view where);

// Translates and compiles. Both steps may throw InputError.
Regex OnigurumaRegex(std::string_view pattern, std::string where);

// One character of \w in Rust's regex (Unicode TS 18), for word boundaries of added tokens.
inline constexpr std::string_view kRustWordCharacter =
    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]";

}  // namespace oscar
