// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

TEST(ByteAlphabet, IsTheOneOfGpt2) {
  EXPECT_EQ(ByteToAlphabet('A'), U'A');
  EXPECT_EQ(ByteToAlphabet(' '), U'Ġ');
  EXPECT_EQ(ByteToAlphabet('\n'), U'Ċ');
  EXPECT_EQ(ByteToAlphabet(0xAD), char32_t{0x143});
  EXPECT_EQ(AlphabetToBytes("ĠÃ©"), " é");
  EXPECT_EQ(AlphabetToBytes("字"), std::nullopt);
}

}  // namespace
}  // namespace oscar
