// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables come from utf8proc, which lacks upper-case forms of more than one character (ß becomes
// SS). Case folding gives the parts of these forms.
#include "capture/text/template/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "capture/files/utf8.h"

namespace oscar::jinja {
namespace {

int Category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
char32_t SimpleUpper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

// Whether a character has Unicode's property Cased.
bool IsCased(char32_t c) {
  const int category = Category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || c == 0xAA || c == 0xBA ||
         (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9);
}

// Upper-case parts of a character without a single upper-case character; empty if it has one.
std::u32string PartsOf(char32_t c) {
  if (c < 0xDF || Category(c) == UTF8PROC_CATEGORY_LU) return {};
  utf8proc_int32_t folded[8] = {};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8,
                                             UTF8PROC_CASEFOLD, &boundary);
  return count > 1 && count <= 8 ? std::u32string(folded, folded + count) : std::u32string();
}

void AppendUpper(char32_t c, std::u32string& out) {
  const std::u32string parts = PartsOf(c);
  if (parts.empty()) out += SimpleUpper(c);
  for (const char32_t part : parts) out += SimpleUpper(part);
}

void AppendTitle(char32_t c, std::u32string& out) {
  const auto simple = static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
  std::u32string parts = simple == c || c == 0xDF ? PartsOf(c) : std::u32string();
  if (parts.empty()) parts = simple;
  const auto first =
      std::ranges::find_if(parts, [](char32_t part) { return SimpleUpper(part) != part; });
  if (first != parts.end() && parts.size() > 1) *first = SimpleUpper(*first);
  out += parts;
}

bool IsCaseIgnorable(char32_t c) {
  const int category = Category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK ||
         std::u32string_view(U"'.:\u00B7\u2019").find(c) != std::u32string_view::npos;
}

// Whether a capital sigma ends a word and becomes U+03C2 (SpecialCasing.txt, Final_Sigma).
bool IsFinalSigma(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && IsCaseIgnorable(text[before - 1])) --before;
  if (before == 0 || !IsCased(text[before - 1])) return false;
  size_t behind = at + 1;
  while (behind < text.size() && IsCaseIgnorable(text[behind])) ++behind;
  return behind == text.size() || !IsCased(text[behind]);
}

void AppendLower(std::u32string_view text, size_t at, std::u32string& out) {
  const char32_t c = text[at];
  if (c == 0x0130) {
    out += U"i\u0307";
  } else if (c == 0x03A3) {
    out += IsFinalSigma(text, at) ? char32_t{0x03C2} : char32_t{0x03C3};
  } else {
    out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
}

// Characters for which `begins` is true get title case, all others lower case.
template <class Begins>
std::string TitleWhere(std::string_view text, Begins begins) {
  const std::u32string all = DecodeUtf8(text);
  std::u32string out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (begins(all, i)) {
      AppendTitle(all[i], out);
    } else {
      AppendLower(all, i, out);
    }
  }
  return EncodeUtf8(out);
}

}  // namespace

std::u32string DecodeUtf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) out += NextCodePoint(text, i);
  return out;
}

std::string EncodeUtf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) AppendUtf8(c, out);
  return out;
}

size_t CodePointCount(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t ByteOffset(std::string_view text, size_t index) {
  size_t byte = 0;
  for (; index > 0 && byte < text.size(); --index) NextCodePoint(text, byte);
  return byte;
}

bool IsSpace(char32_t c) { return (c >= 0x1C && c <= 0x1F) || IsWhiteSpace(c); }

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  const int category = Category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_SO;
}

bool HasOtherDigits(std::string_view text) {
  const std::u32string all = DecodeUtf8(text);
  const auto is_digit = [&](size_t i) {
    return i < all.size() && Category(all[i]) == UTF8PROC_CATEGORY_ND;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const bool joins = all[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1);
    if (joins || (all[i] >= 0x80 && is_digit(i))) return true;
  }
  return false;
}

std::string_view Strip(std::string_view text, bool left, bool right,
                       const std::string* characters) {
  const std::u32string set = characters != nullptr ? DecodeUtf8(*characters) : std::u32string();
  const auto strips = [&](char32_t c) {
    return characters != nullptr ? set.find(c) != set.npos : IsSpace(c);
  };
  while (left && !text.empty()) {
    size_t end = 0;
    if (!strips(NextCodePoint(text, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
    size_t position = begin;
    if (!strips(NextCodePoint(text, position))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::string Lower(std::string_view text) {
  return TitleWhere(text, [](std::u32string_view, size_t) { return false; });
}
std::string Capitalize(std::string_view text) {
  return TitleWhere(text, [](std::u32string_view, size_t i) { return i == 0; });
}
std::string Title(std::string_view text) {
  return TitleWhere(
      text, [](std::u32string_view all, size_t i) { return i == 0 || !IsCased(all[i - 1]); });
}
std::string Upper(std::string_view text) {
  std::u32string out;
  for (const char32_t c : DecodeUtf8(text)) AppendUpper(c, out);
  return EncodeUtf8(out);
}

}  // namespace oscar::jinja
