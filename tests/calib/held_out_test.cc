// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/held_out.h"

#include <gtest/gtest.h>

#include <numeric>

namespace oscar {
namespace {

TEST(HeldOut, TakesEveryTenthDocumentWhole) {
  const std::vector<int64_t> lengths(25, 100);
  const HeldOutSplit split = SplitHeldOut(lengths, 0.1);
  EXPECT_EQ(split.kind, HeldOutKind::kDocuments);
  EXPECT_EQ(split.held_out_tokens, 200);
  for (size_t i = 0; i < lengths.size(); ++i)
    EXPECT_EQ(split.fit_rows[i], i == 9 || i == 19 ? 0 : 100) << i;
}

TEST(HeldOut, OneDocumentGivesItsTail) {
  const HeldOutSplit split = SplitHeldOut({768}, 0.1);
  EXPECT_EQ(split.kind, HeldOutKind::kTailRows);
  EXPECT_EQ(split.fit_rows[0], 692);
  EXPECT_EQ(split.held_out_tokens, 76);
}

TEST(HeldOut, OneHugeDocumentIsNotHeldOutWhole) {
  std::vector<int64_t> lengths(10, 10);
  lengths[9] = 10000;  // the tenth has nearly all tokens
  const HeldOutSplit split = SplitHeldOut(lengths, 0.1);
  EXPECT_EQ(split.kind, HeldOutKind::kTailRows);
  EXPECT_EQ(split.fit_rows[9], 9000);
}

TEST(HeldOut, SharesAreOfQueriesThatCount) {
  // As in a chat, only queries of the answer at the end count. Holding out a tenth means a tenth of
  // those.
  CountedQueries counted(1, std::vector<uint8_t>(100, 0));
  for (size_t i = 60; i < 100; i += 2) counted[0][i] = 1;  // 20 queries
  HeldOutSplit split = SplitHeldOut({100}, 0.1, counted);
  EXPECT_EQ(split.kind, HeldOutKind::kTailRows);
  EXPECT_EQ(split.fit_rows[0], 96);  // of the counted queries, 96 and 98 are held out
  EXPECT_EQ(split.NumHeldOutQueries(), 2);
  EXPECT_EQ(split.held_out_tokens, 4);
  EXPECT_EQ(split.NumFitQueries(), 18);
  EXPECT_EQ(split.NumKeptRows(0, 100, 16), 2);
  // The tenth document has no query that counts, so it cannot judge a fit.
  std::vector<int64_t> lengths(20, 50);
  counted.assign(20, {});
  counted[9].assign(50, 0);
  split = SplitHeldOut(lengths, 0.1, counted);
  EXPECT_EQ(split.kind, HeldOutKind::kDocuments);  // the twentieth can judge
  EXPECT_EQ(split.NumHeldOutQueries(), 50);
  EXPECT_EQ(split.NumFitQueries(), 900);
  counted[19].assign(50, 0);
  split = SplitHeldOut(lengths, 0.1, counted);
  EXPECT_EQ(split.kind, HeldOutKind::kTailRows);
  EXPECT_EQ(split.fit_rows[9], 50);
  EXPECT_EQ(split.fit_rows[0], 45);
  // A mask that counts every query gives the same split as no mask.
  const HeldOutSplit all =
      SplitHeldOut(lengths, 0.1, CountedQueries(20, std::vector<uint8_t>(50, 1)));
  EXPECT_EQ(all.fit_rows, SplitHeldOut(lengths, 0.1).fit_rows);
}

TEST(HeldOut, ShareZeroHoldsOutNothing) {
  const HeldOutSplit split = SplitHeldOut({5, 6}, 0);
  EXPECT_EQ(split.kind, HeldOutKind::kNone);
  EXPECT_EQ(split.fit_rows, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(SplitHeldOut({3, 3}, 0.1).kind, HeldOutKind::kNone);  // too short to hold out a row
}

TEST(HeldOut, CountsAddUp) {
  for (int64_t n = 1; n < 40; ++n) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < n; ++i) lengths.push_back(1 + (i * 7919) % 300);
    const HeldOutSplit split = SplitHeldOut(lengths, 0.1);
    const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    const int64_t fitted =
        std::accumulate(split.fit_rows.begin(), split.fit_rows.end(), int64_t{0});
    EXPECT_EQ(fitted + split.held_out_tokens, total);
    EXPECT_LE(3 * split.held_out_tokens, total);
  }
}

}  // namespace
}  // namespace oscar
