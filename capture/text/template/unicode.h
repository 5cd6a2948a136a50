// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Python's view of a string: code points, white space, cases. Trap: Python's white space has U+001C
// to U+001F, which Unicode's property White_Space has not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oscar::jinja {

std::u32string DecodeUtf8(std::string_view text);  // valid UTF-8
std::string EncodeUtf8(std::u32string_view text);
size_t CodePointCount(std::string_view text);
// Byte at which code point `index` of `text` begins; its size behind the last.
size_t ByteOffset(std::string_view text, size_t index);

bool IsSpace(char32_t c);      // str.isspace, and \s of a Python pattern
bool IsPrintable(char32_t c);  // str.isprintable: what repr leaves alone
// Digits beyond 0 to 9, or an underscore between two: what Python's int() takes and we do not.
bool HasOtherDigits(std::string_view text);
// `text` without white space, or without the code points of `characters`, at its ends.
std::string_view Strip(std::string_view text, bool left, bool right,
                       const std::string* characters = nullptr);

std::string Lower(std::string_view text);
std::string Upper(std::string_view text);
std::string Title(std::string_view text);       // str.title
std::string Capitalize(std::string_view text);  // str.capitalize

}  // namespace oscar::jinja
