// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables are utf8proc's; the full case mappings of Unicode's SpecialCasing.txt that templates can
// meet (one character becomes several) are written out here.
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
char32_t SimpleLower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t SimpleTitle(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

struct SpecialCase {
  char32_t c;
  std::u32string_view upper, title;
};
constexpr SpecialCase kSpecialCases[] = {
    {0x00DF, U"SS", U"Ss"},
    {0x0149, U"\u02BCN", U"\u02BCN"},
    {0x01F0, U"J\u030C", U"J\u030C"},
    {0x0390, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
    {0x03B0, U"\u03A5\u0308\u0301", U"\u03A5\u0308\u0301"},
    {0x0587, U"\u0535\u0552", U"\u0535\u0582"},
    {0x1E96, U"H\u0331", U"H\u0331"},
    {0x1E97, U"T\u0308", U"T\u0308"},
    {0x1E98, U"W\u030A", U"W\u030A"},
    {0x1E99, U"Y\u030A", U"Y\u030A"},
    {0x1E9A, U"A\u02BE", U"A\u02BE"},
    {0xFB00, U"FF", U"Ff"},
    {0xFB01, U"FI", U"Fi"},
    {0xFB02, U"FL", U"Fl"},
    {0xFB03, U"FFI", U"Ffi"},
    {0xFB04, U"FFL", U"Ffl"},
    {0xFB05, U"ST", U"St"},
    {0xFB06, U"ST", U"St"},
    {0xFB13, U"\u0544\u0546", U"\u0544\u0576"},
    {0xFB14, U"\u0544\u0535", U"\u0544\u0565"},
    {0xFB15, U"\u0544\u053B", U"\u0544\u056B"},
    {0xFB16, U"\u054E\u0546", U"\u054E\u0576"},
    {0xFB17, U"\u0544\u053D", U"\u0544\u056D"},
};

const SpecialCase* FindSpecial(char32_t c) {
  if (c < 0xDF) return nullptr;
  const auto* found = std::ranges::find(kSpecialCases, c, &SpecialCase::c);
  return found == std::end(kSpecialCases) ? nullptr : found;
}

void AppendUpper(char32_t c, std::u32string& out) {
  if (const SpecialCase* special = FindSpecial(c)) {
    out += special->upper;
  } else {
    out += SimpleUpper(c);
  }
}

void AppendTitle(char32_t c, std::u32string& out) {
  if (const SpecialCase* special = FindSpecial(c)) {
    out += special->title;
  } else {
    out += SimpleTitle(c);
  }
}

bool IsCaseIgnorable(char32_t c) {
  const int category = Category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' || c == 0xB7 ||
         c == 0x2019;
}

// A capital sigma at the end of a word is written U+03C2 (SpecialCasing.txt, Final_Sigma).
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
    out += SimpleLower(c);
  }
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
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

bool IsSpace(char32_t c) { return (c >= 0x1C && c <= 0x1F) || IsWhiteSpace(c); }

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  const int category = Category(c);
  return category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_CF &&
         category != UTF8PROC_CATEGORY_CS && category != UTF8PROC_CATEGORY_CO &&
         category != UTF8PROC_CATEGORY_CN && category != UTF8PROC_CATEGORY_ZL &&
         category != UTF8PROC_CATEGORY_ZP && category != UTF8PROC_CATEGORY_ZS;
}

bool IsAlphabetic(char32_t c) {
  const int category = Category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool IsDecimal(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_ND; }
bool IsDigit(char32_t c) {
  if (IsDecimal(c)) return true;
  return c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
         (c >= 0x2474 && c <= 0x247C) || (c >= 0x2488 && c <= 0x2490);
}
bool IsNumeric(char32_t c) {
  const int category = Category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}
bool IsWord(char32_t c) { return c == '_' || IsAlphabetic(c) || IsNumeric(c); }

bool IsLower(char32_t c) {
  if (Category(c) == UTF8PROC_CATEGORY_LL) return true;
  return c == 0xAA || c == 0xBA || (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9);
}
bool IsUpper(char32_t c) {
  if (Category(c) == UTF8PROC_CATEGORY_LU) return true;
  return (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF);
}
bool IsTitle(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LT; }

std::u32string Lower(std::u32string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) AppendLower(text, i, out);
  return out;
}

std::u32string Upper(std::u32string_view text) {
  std::u32string out;
  for (const char32_t c : text) AppendUpper(c, out);
  return out;
}

std::u32string TitleCase(std::u32string_view text) {
  std::u32string out;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (inside) {
      AppendLower(text, i, out);
    } else {
      AppendTitle(text[i], out);
    }
    inside = IsCased(text[i]);
  }
  return out;
}

std::u32string Capitalize(std::u32string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 0) {
      AppendTitle(text[i], out);
    } else {
      AppendLower(text, i, out);
    }
  }
  return out;
}

std::u32string SwapCase(std::u32string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsUpper(text[i])) {
      AppendLower(text, i, out);
    } else if (IsLower(text[i])) {
      AppendUpper(text[i], out);
    } else {
      out += text[i];
    }
  }
  return out;
}

std::u32string CaseFold(std::u32string_view text) {
  std::u32string out;
  for (const char32_t c : text) {
    if (const SpecialCase* special = FindSpecial(c)) {
      for (const char32_t folded : special->upper) out += SimpleLower(folded);
    } else {
      out += SimpleLower(c == 0x03C2 ? char32_t{0x03C3} : c);
    }
  }
  return out;
}

}  // namespace oscar::jinja
