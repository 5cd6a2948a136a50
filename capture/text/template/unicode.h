// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Python's view of a string: code points, white space, cases and classes of characters. Trap:
// Python's white space has U+001C to U+001F, which Unicode's property White_Space has not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oscar::jinja {

std::u32string DecodeUtf8(std::string_view text);  // valid UTF-8
std::string EncodeUtf8(std::u32string_view text);
size_t CodePointCount(std::string_view text);
bool IsAscii(std::string_view text);

bool IsSpace(char32_t c);      // str.isspace, and \s of a Python pattern
bool IsPrintable(char32_t c);  // str.isprintable: what repr leaves alone
bool IsAlphabetic(char32_t c);
bool IsDecimal(char32_t c);
bool IsDigit(char32_t c);
bool IsNumeric(char32_t c);
bool IsWord(char32_t c);  // \w
bool IsLower(char32_t c);
bool IsUpper(char32_t c);
bool IsTitle(char32_t c);
inline bool IsCased(char32_t c) { return IsLower(c) || IsUpper(c) || IsTitle(c); }

std::u32string Lower(std::u32string_view text);
std::u32string Upper(std::u32string_view text);
std::u32string TitleCase(std::u32string_view text);   // str.title
std::u32string Capitalize(std::u32string_view text);  // str.capitalize
std::u32string SwapCase(std::u32string_view text);
std::u32string CaseFold(std::u32string_view text);

}  // namespace oscar::jinja
