// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/priced_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "linalg/base/error.h"

namespace oscar {
namespace {

// Makes texts in which sequence i holds the tokens 10000 i, 10000 i + 1, ...
TokenTexts Counting(const std::vector<int64_t>& lengths) {
  TokenTexts texts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (texts.emplace_back(); std::ssize(texts[i]) < lengths[i];)
      texts[i].push_back(static_cast<int32_t>(10000 * i + texts[i].size()));
  }
  return texts;
}

std::vector<int32_t> Sources(const TokenTexts& texts) {
  std::vector<int32_t> sources;
  for (const std::vector<int32_t>& text : texts) sources.push_back(text[0] / 10000);
  return sources;
}

HeldOutSplit FittedTo(std::vector<int64_t> rows) {
  return {HeldOutKind::kDocuments, std::move(rows), 0};
}

TEST(PricedText, IsOfManyDocumentsOverAll) {
  const std::vector<int64_t> lengths(12, 2048);
  const HeldOutSplit split = SplitHeldOut(lengths, 0.25);
  const TokenTexts texts = FittedText(Counting(lengths), split, 4096, 1024);
  // Evenly spread over documents 0, 1, 2, 4, 5, 6, 8, 9 and 10, which are not held out.
  EXPECT_EQ(Sources(texts), (std::vector<int32_t>{0, 2, 5, 8}));
  for (const std::vector<int32_t>& text : texts) {
    EXPECT_EQ(text.size(), 1024u);
    EXPECT_EQ(text.back() % 10000, 2047);
  }
  EXPECT_EQ(NumTokens(FittedText(Counting(lengths), split, 40000, 1024)), 12 * 2048);
}

// Passages end at the last fitted row. Shorter documents follow whole, the longest first, and
// held-out documents come last.
TEST(PricedText, OfFewOrShortDocumentsIsWhatThereIs) {
  const TokenTexts sequences = Counting({100, 3000, 300, 3000, 1});
  const HeldOutSplit split = FittedTo({100, 0, 300, 2000, 1});
  const auto sources = [&](int64_t tokens) {
    return Sources(FittedText(sequences, split, tokens, 1024));
  };
  EXPECT_EQ(sources(500), (std::vector<int32_t>{3}));
  EXPECT_EQ(sources(2100), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(sources(9000), (std::vector<int32_t>{3, 2, 0, 1}));
  EXPECT_EQ(FittedText(sequences, split, 500, 1024)[0].back(), 31999);
  EXPECT_TRUE(FittedText({{1}, {2}}, FittedTo({1, 0}), 500, 1024).empty());
}

TEST(PricedText, EndsInTheTokensThatWereSetAside) {
  const TokenTexts sequences = Counting({2048, 2048});
  const HeldOutSplit split = SplitHeldOut({2048, 2048}, 0.1);
  ASSERT_EQ(split.kind, HeldOutKind::kTailRows);
  for (const int64_t tokens : {2, 1024, 3000, 9000}) {
    const auto texts = HeldOutText(sequences, split, tokens);
    for (const std::vector<int32_t>& text : texts) EXPECT_EQ(text.back() % 10000, 2047);
    EXPECT_EQ(NumTokens(texts), std::min<int64_t>(tokens, 4096));
  }
}

TEST(PricedText, IsNotOfOneToken) {
  EXPECT_THROW(HeldOutText({{1}, {2}, {3}}, SplitHeldOut({1, 1, 1}, 0.34), 100), InputError);
  EXPECT_THROW(HeldOutText({{1, 2}}, SplitHeldOut({2}, 0), 100), InputError);
}

}  // namespace
}  // namespace oscar
