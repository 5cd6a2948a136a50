// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace oscar {
namespace {

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(FirstInvalidUtf8("plain"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("é字😀\xEF\xBF\xBF"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("ab\xFF"), 2u);
  EXPECT_EQ(FirstInvalidUtf8("a\xC0\xAF"), 1u);         // overlong
  EXPECT_EQ(FirstInvalidUtf8("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(FirstInvalidUtf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(FirstInvalidUtf8("x\xE5\xAD"), 1u);         // cut short
}

// These are the examples of the Unicode standard 15, tables 3-8 and 3-11.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

TEST(Utf8, CodePointsRoundTrip) {
  for (const char32_t c : {0x0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF}) {
    std::string text;
    AppendUtf8(c, text);
    size_t position = 0;
    EXPECT_EQ(NextCodePoint(text, position), c);
    EXPECT_EQ(position, text.size());
  }
}

}  // namespace
}  // namespace oscar
