// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/exact_tokens.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace oscar {
namespace {

bool Reads(const at::Tensor& mask, int64_t query, int64_t key) {
  return mask[query][key].item<bool>();
}

TEST(ExactTokens, NothingIsExactUnlessItIsSaid) {
  EXPECT_FALSE(ExactTokens{}.any());
  EXPECT_FALSE(ExactInWindows({0, 0}).any());
  EXPECT_TRUE(ExactInWindows({1, 0}).any());
  EXPECT_TRUE(ExactInWindows({0, 1}).any());
  EXPECT_FALSE(ExactMask({}, at::arange(5), 5).any().item<bool>());
  const ExactTokens sink = ExactInWindows({1, 0});
  EXPECT_FALSE((ExactSides{{}, {}}.any()));
  EXPECT_TRUE((ExactSides{sink, {}}.any()));
  EXPECT_TRUE((ExactSides{{}, sink}.any()));
}

// For query i, the keys t < sink and those with i - t < recent are exact.
TEST(ExactTokens, WindowsAreTheirDefinition) {
  const at::Tensor mask = ExactMask(ExactInWindows({3, 4}), at::arange(12), 12);
  for (int64_t i = 0; i < 12; ++i) {
    for (int64_t t = 0; t <= i; ++t) EXPECT_EQ(Reads(mask, i, t), t < 3 || i - t < 4) << i << t;
  }
}

// After 2 sinks come quantization blocks of 4 tokens. A block is quantized once 3 younger tokens
// exist, so the first one (tokens 2 to 5) is quantized when token 8 arrives.
TEST(ExactTokens, BlocksAreQuantizedWhenTheyAreFullAndOldEnough) {
  const ExactTokens tokens = ExactUntilBlocksFill(2, 4, 3);
  EXPECT_EQ(tokens.quantized_end(0), 2);
  EXPECT_EQ(tokens.quantized_end(8), 2);
  EXPECT_EQ(tokens.quantized_end(9), 6);
  EXPECT_EQ(tokens.quantized_end(12), 6);
  EXPECT_EQ(tokens.quantized_end(13), 10);
  const at::Tensor mask = ExactMask(tokens, at::tensor({7, 8, 12}, at::kLong), 14);
  EXPECT_TRUE(mask[0].all().item<bool>());
  for (int64_t t = 0; t < 14; ++t) {
    EXPECT_EQ(Reads(mask, 1, t), t < 2 || t >= 6) << t;
    EXPECT_EQ(Reads(mask, 2, t), t < 2 || t >= 10) << t;
  }
}

}  // namespace
}  // namespace oscar
