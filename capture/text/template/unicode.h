// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Strings as Python sees them: code points, white space, case. Trap: Python's white space includes
// U+001C to U+001F, but Unicode's property White_Space does not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oscar::jinja {

std::u32string DecodeUtf8(std::string_view text);  // valid UTF-8
std::string EncodeUtf8(std::u32string_view text);
size_t CodePointCount(std::string_view text);
// Returns the byte offset of code point `index` in `text`; its size if `index` is past the last.
size_t ByteOffset(std::string_view text, size_t index);

bool IsSpace(char32_t c);      // str.isspace, and \s in Python's patterns
bool IsPrintable(char32_t c);  // str.isprintable: characters that repr does not escape
// Whether there are non-ASCII digits, or an underscore between two digits. Python's int() accepts
// these, we do not.
bool HasOtherDigits(std::string_view text);
// Strips white space, or the code points of `characters`, from the ends of `text`.
std::string_view Strip(std::string_view text, bool left, bool right,
                       const std::string* characters = nullptr);

std::string Lower(std::string_view text);
std::string Upper(std::string_view text);
std::string Title(std::string_view text);       // str.title
std::string Capitalize(std::string_view text);  // str.capitalize

}  // namespace oscar::jinja
