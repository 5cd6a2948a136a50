// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/int2_format.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

constexpr Int2Format kFull{.head_dim = 128, .quant_group_size = 128};
constexpr Int2Format kHalves{.head_dim = 128, .quant_group_size = 64};
constexpr Int2Format kBFloat16{
    .head_dim = 128, .quant_group_size = 128, .metadata = MetadataType::kBFloat16};

static_assert(Int2PackedBytesPerRow(kFull) == 32);
static_assert(Int2MetadataValuesPerRow(kFull) == 2 && Int2MetadataValuesPerRow(kHalves) == 4);
static_assert(Int2BytesPerRow(kFull) == 40 && Int2BytesPerRow(kBFloat16) == 36);
static_assert(IsValid(kFull) && IsValid({.head_dim = 96, .quant_group_size = 32}));
static_assert(!IsValid({.head_dim = 126, .quant_group_size = 126}));
static_assert(!IsValid({.head_dim = 128, .quant_group_size = 96}));
static_assert(!IsValid({.head_dim = 0, .quant_group_size = 1}));
static_assert(!IsValid({.head_dim = 128, .quant_group_size = 0}));

TEST(Int2Format, BytesPerTokenOfPublishedModels) {            // K and V, all layers
  EXPECT_EQ(2 * 36 * 8 * Int2BytesPerRow(kBFloat16), 20736);  // Qwen3-8B
  EXPECT_EQ(2 * 36 * 8 * Int2BytesPerRow(kFull), 23040);
  EXPECT_EQ(2 * 80 * 8 * Int2BytesPerRow(kFull), 51200);  // 80 layers, 8 KV heads
}

TEST(Int2Format, ElementPositionsAreQuartered) {
  EXPECT_EQ(Int2ByteOfElement(kFull, 0), 0);
  EXPECT_EQ(Int2ByteOfElement(kFull, 32), 0);
  EXPECT_EQ(Int2ByteOfElement(kFull, 127), 31);
  EXPECT_EQ(Int2ShiftOfElement(kFull, 31), 0);
  EXPECT_EQ(Int2ShiftOfElement(kFull, 32), 2);
  EXPECT_EQ(Int2ShiftOfElement(kFull, 127), 6);
}

}  // namespace
}  // namespace oscar
