// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares rows of vLLM's and llama.cpp's caches with values worked out by hand.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/error.h"
#include "tests/reference/half_offset_codec.h"
#include "tests/reference/scalar_llama_q2.h"

namespace oscar {
namespace {

using Codes = std::vector<uint8_t>;

TEST(HalfOffset, RoundsScaleAndMinimumBeforeItQuantizes) {
  // 1 / 3 and 0.1 are not float16 numbers; the nearest are 0x3555 = 0.333251953125 and 0x2E66 =
  // 0.0999755859375.
  const std::vector<float> x = {0.1F, 0.4F, 0.6F, 1.1F};
  Codes codes(4);
  const HalfOffset group = EncodeHalfOffsetRow(x, codes);
  EXPECT_EQ(group.scale, 0.333251953125F);
  EXPECT_EQ(group.min, 0.0999755859375F);
  EXPECT_EQ(codes, (Codes{0, 1, 2, 3}));
  std::vector<float> y(4);
  DecodeHalfOffsetRow(codes, group, y);
  EXPECT_EQ(y[3], 3 * 0.333251953125F + 0.0999755859375F);
  // In exact arithmetic (x - min) / scale is 0.5, a tie. With the rounded scale and minimum it is
  // larger.
  const std::vector<float> tie = {0.1F, 0.1F + 1.0F / 6, 0.6F, 1.1F};
  EncodeHalfOffsetRow(tie, codes);
  EXPECT_EQ(codes[1], 1);  // (0.266667 - 0.099976) / 0.333252 + 0.5 = 1.0002
}

TEST(HalfOffset, ARowOfOneValueReadsBackAsItsHalf) {
  Codes codes(64, 9);
  const std::vector<float> x(64, 0.1F);
  const HalfOffset group = EncodeHalfOffsetRow(x, codes);
  EXPECT_EQ(group.scale, 0);  // 1e-8 is 0 in float16
  EXPECT_EQ(codes, Codes(64, 0));
  std::vector<float> y(64);
  DecodeHalfOffsetRow(codes, group, y);
  EXPECT_EQ(y, std::vector<float>(64, 0.0999755859375F));
  const std::vector<float> nan = {1, std::numeric_limits<float>::quiet_NaN()};
  Codes two(2);
  EXPECT_THROW(EncodeHalfOffsetRow(nan, two), NumericalError);
}

TEST(HalfOffset, ItsClipThresholdLiesBetweenTwoOrderStatistics) {
  const std::vector<float> x = {-4, 1, 2, -3, 0};  // |x| sorted: 0 1 2 3 4
  EXPECT_EQ(ClipThresholdInterpolated(x, 0.75), 3);
  EXPECT_EQ(ClipThresholdInterpolated(x, 0.625), 2.5F);
  EXPECT_EQ(ClipThresholdInterpolated(x, 0.8125), 3.25F);
  EXPECT_EQ(ClipThresholdInterpolated(x, 1), 4);
  EXPECT_EQ(ClipThresholdInterpolated(x, 2), 4);
  EXPECT_TRUE(std::isinf(ClipThresholdInterpolated(x, 0)));
}

TEST(LlamaQ2, QuantizesWhatIsLeftAfterTheMean) {
  // The mean is 3, and deviations are +-1 and +-2 in equal numbers, so sigma = sqrt(2.5).
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) x.push_back(3.0F + std::array<float, 4>{-2, -1, 1, 2}[i % 4]);
  Codes codes(32);
  std::vector<float> y(32);
  QuantizeDequantizeLlamaQ2(x, 0, codes, y);
  EXPECT_EQ(codes[0], 0);  // -2 / 1.58 = -1.26
  EXPECT_EQ(codes[1], 1);  // -1 / 1.58 = -0.63, above -0.6745
  EXPECT_EQ(codes[2], 2);
  EXPECT_EQ(codes[3], 3);
  const float sigma = 1.5810546875F;  // sqrt(2.5) rounded to float16
  EXPECT_EQ(y[0], sigma * -0.9816F + 3.0F);
  EXPECT_EQ(y[2], sigma * 0.4528F + 3.0F);
  // Clipping at 1 makes every deviation +-1, so sigma is 1 and all values fall into outer cells.
  QuantizeDequantizeLlamaQ2(x, 0.4, codes, y);  // sorted |r|[12] = 1: 16 ones, 16 twos
  EXPECT_EQ(codes[0], 0);
  EXPECT_EQ(codes[1], 0);
  EXPECT_EQ(y[0], -0.9816F + 3.0F);
}

TEST(LlamaQ2, MeansBelongTo128ValuesAndSigmasTo32) {
  EXPECT_EQ(LlamaQ2GroupSize(64), 32);
  EXPECT_EQ(LlamaQ2GroupSize(128), 128);
  EXPECT_EQ(LlamaQ2GroupSize(256), 128);
  std::vector<float> x(256), y(256);
  for (size_t i = 0; i < x.size(); ++i) {
    const float block = static_cast<float>(1 << (i / 32 % 4));
    x[i] = (i < 128 ? 5.0F : -7.0F) + (i % 2 == 0 ? block : -block);
  }
  QuantizeDequantizeLlamaQ2(x, 0, {}, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const float mean = i < 128 ? 5.0F : -7.0F;
    EXPECT_EQ(y[i] - mean, (mean + 0.9816F * (x[i] - mean)) - mean) << i;  // |x - mean| = sigma
  }
  std::vector<float> constant(64, 2.5F), read(64);
  QuantizeDequantizeLlamaQ2(constant, 0.96, {}, read);
  EXPECT_EQ(read, constant);
}

}  // namespace
}  // namespace oscar
