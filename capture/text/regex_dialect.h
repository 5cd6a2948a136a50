// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json patterns are written for Oniguruma (Ruby syntax); we run PCRE2. This translates
// the part of the syntax that tokenizers use and refuses the rest by name. Trap: what looks alike
// may differ silently: \s (U+180E), \w, \h, \v, {n}+ (repeated, not possessive), {,n}, [a&&b],
// (?m).
#pragma once

#include <string>
#include <string_view>

#include "capture/files/regex.h"

namespace oscar {

// The PCRE2 pattern (for UTF, UCP, MULTILINE, newline = LF) that matches what Oniguruma matches.
// Throws InputError naming `where`, the construct and its offset in bytes.
std::string OnigurumaToPcre2(std::string_view pattern, std::string_view where);

// Throws InputError as both steps do.
Regex OnigurumaRegex(std::string_view pattern, std::string where);

// One character of Rust's regex class \w (Unicode TS 18): word boundaries of added tokens.
inline constexpr std::string_view kRustWordCharacter =
    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]";

}  // namespace oscar
