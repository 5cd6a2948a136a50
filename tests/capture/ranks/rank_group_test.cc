// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/ranks/rank_group.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

TEST(OneRank, IsRankZeroOfOneAndReadsItsOwnWords) {
  RankGroup group;
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  EXPECT_FALSE(group.Has("stop"));
  group.Set("stop", "1");
  EXPECT_TRUE(group.Has("stop"));
  EXPECT_EQ(group.Get("stop"), "1");
  group.Set("stop", "2");
  EXPECT_EQ(group.Get("stop"), "2");
  EXPECT_FALSE(OneRank().Has("stop")) << "groups share no words";
}

}  // namespace
}  // namespace oscar
