// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/position_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace oscar {
namespace {

TEST(SelectRows, StratifiedEvenlyAndUpToTheLast) {
  const std::vector<int64_t> rows = SelectRows(4096, 256);
  ASSERT_EQ(rows.size(), 256u);
  EXPECT_EQ(rows.front(), 15);
  EXPECT_EQ(rows.back(), 4095);
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i] - rows[i - 1], 16);
}

TEST(SelectRows, EveryBinHasItsShareAtAnyLength) {
  for (const int64_t length : {17, 100, 257, 1000, 4095, 8192}) {
    for (const int64_t count : {1, 16, 20, 64, 256}) {
      const std::vector<int64_t> rows = SelectRows(length, count);
      EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
      EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), rows.size());
      EXPECT_GE(static_cast<int64_t>(rows.size()), std::min(count, length));
      EXPECT_GE(rows.front(), 0);
      EXPECT_EQ(rows.back(), length - 1);
      if (count >= length) {
        EXPECT_EQ(static_cast<int64_t>(rows.size()), length);
      }
    }
  }
}

TEST(SelectRows, HeadlineRowsSeeAQuantizedKey) {
  EXPECT_EQ(FirstHeadlineRow(4096, 320), 2048);
  EXPECT_EQ(FirstHeadlineRow(512, 320), 320);
  EXPECT_FALSE(InsideWindows(FirstHeadlineRow(512, 320), 64, 256));
}

TEST(SelectRows, ZeroIsAll) {
  EXPECT_EQ(SelectRows(5, 0), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(SelectRows(0, 0), std::vector<int64_t>());
  EXPECT_EQ(SelectRows(3, 100), (std::vector<int64_t>{0, 1, 2}));
}

TEST(PositionBuckets, CoverTheSequenceAndMarkTheWindows) {
  const std::vector<PositionBucket> buckets = MakePositionBuckets(4096, 64, 256);
  ASSERT_EQ(buckets.size(), 17u);  // 16 bins of 256 tokens, one of them split at 320
  EXPECT_EQ(buckets[1].from, 256);
  EXPECT_EQ(buckets[1].to, 320);
  EXPECT_TRUE(buckets[1].inside_windows);
  EXPECT_FALSE(buckets[2].inside_windows);
  int64_t end = 0;
  for (const PositionBucket& bucket : buckets) {
    EXPECT_EQ(bucket.from, end);
    EXPECT_LT(bucket.from, bucket.to);
    end = bucket.to;
  }
  EXPECT_EQ(end, 4096);
  EXPECT_EQ(BucketOf(buckets, 319), 1u);
  EXPECT_EQ(BucketOf(buckets, 320), 2u);
  EXPECT_EQ(BucketOf(buckets, 4095), 16u);
}

// With 64 sinks and 256 recent tokens, position 319 sees only exact keys. Position 320 sees a
// quantized key.
TEST(PositionBuckets, EdgeOfTheWindows) {
  EXPECT_TRUE(InsideWindows(319, 64, 256));
  EXPECT_FALSE(InsideWindows(320, 64, 256));
  EXPECT_FALSE(InsideWindows(0, 0, 0));
}

TEST(PositionBuckets, ShortSequencesAndNoWindows) {
  for (const int64_t longest : {1, 2, 15, 16, 100, 320, 321}) {
    int64_t inside = 0, all = 0;
    for (const PositionBucket& bucket : MakePositionBuckets(longest, 64, 256)) {
      all += bucket.to - bucket.from;
      inside += bucket.inside_windows ? bucket.to - bucket.from : 0;
    }
    EXPECT_EQ(all, longest);
    EXPECT_EQ(inside, std::min<int64_t>(longest, 320));
  }
  for (const PositionBucket& bucket : MakePositionBuckets(1000, 0, 0))
    EXPECT_FALSE(bucket.inside_windows);
}

}  // namespace
}  // namespace oscar
