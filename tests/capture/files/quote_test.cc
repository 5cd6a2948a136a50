// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests how hostile text is quoted in messages.
#include "capture/files/quote.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

using namespace std::string_literals;

TEST(Quoted, EscapesWhatATerminalOrALogMustNotSee) {
  EXPECT_EQ(Quoted("model.k_proj"), "\"model.k_proj\"");
  EXPECT_EQ(Quoted("a\nb\x1b[2J\0"s), "\"a\\nb\\x1b[2J\\x00\"");
  EXPECT_EQ(Quoted("é😀"), "\"é😀\"");
  EXPECT_EQ(Quoted("\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82"),
            "\"\\xc0\\xaf|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82\"");
}

TEST(Quoted, CutsLongTextAtACharacterAndSaysSo) {
  EXPECT_EQ(Quoted("éééé", 3), "\"éé... (8 bytes)\"");
  EXPECT_LT(Quoted(std::string(60'000, 'n')).size(), 160u);
}

}  // namespace
}  // namespace oscar
