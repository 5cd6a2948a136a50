// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests properties of decode plans. Needs no GPU.
#include <gtest/gtest.h>

#include "export/cuda/decode/decode_attention.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

TEST(DecodePlan, OneLongRequestFillsTheMachine) {
  const DecodePlan plan = PlanDecode({}, 8, 32, {100000}, 336, 132);
  EXPECT_EQ(plan.heads_per_unit, 4);
  EXPECT_EQ(plan.units_per_kv_head, 1);
  EXPECT_EQ(plan.first_split.back(), 31);  // 8 heads * 31 splits, for 2 CTAs on each of 132 SMs
}

TEST(DecodePlan, AShortLaunchLeavesTheNextOneRoomToBegin) {
  const DecodePlan plan = PlanDecode({}, 8, 32, {30000}, 336, 132);
  EXPECT_EQ(plan.first_split.back(), 31);
}

TEST(DecodePlan, AFormatWithOneCtaPerSmGetsHalfTheSplits) {
  const CacheFormat groups_of_64 = {{128, 2, 64}, {128, 2, 64}};
  const DecodePlan plan = PlanDecode(groups_of_64, 8, 32, {100000}, 336, 132);
  EXPECT_EQ(plan.first_split.back(), 16);  // 8 heads * 16 splits, in one wave on 132 SMs
}

TEST(DecodePlan, ManyRequestsAreNotSplit) {
  const DecodePlan plan = PlanDecode({}, 8, 32, std::vector<int>(32, 4096), 336, 132);
  EXPECT_EQ(plan.first_split.back(), 32);
}

TEST(DecodePlan, LongRequestsGetMoreSplits) {
  const DecodePlan plan = PlanDecode({}, 8, 32, {100000, 1000}, 336, 132);
  EXPECT_GT(plan.first_split[1], 20);
  EXPECT_LE(plan.first_split[2] - plan.first_split[1], 2);
}

TEST(DecodePlan, MoreThanEightQueryHeadsShareAKvHeadInEvenUnits) {
  const DecodePlan plan = PlanDecode({}, 2, 24, {1000}, 336, 132);
  EXPECT_EQ(plan.units_per_kv_head, 2);
  EXPECT_EQ(plan.heads_per_unit, 6);
}

TEST(DecodePlan, RefusesByName) {
  const auto message = [](const CacheFormat& format, int kv_heads, int q_heads, size_t requests) {
    return ErrorOf<UsageError>(
        [&] { PlanDecode(format, kv_heads, q_heads, std::vector<int>(requests, 100), 336, 132); });
  };
  EXPECT_TRUE(Says(message({{160, 2, 160}, {160, 2, 160}}, 8, 32, 1), "128/128"));
  EXPECT_TRUE(Says(message({}, 8, 30, 1), "30 query heads"));
  EXPECT_TRUE(Says(message({}, 1, 64, 1), "at most 32"));
  EXPECT_TRUE(Says(message({}, 8, 32, 300), "1 to 256"));
  EXPECT_TRUE(Says(message({{128, 5, 128}, {128, 2, 128}}, 8, 32, 1), "invalid"));
}

}  // namespace
}  // namespace oscar
