// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/bits_per_element.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

// Compares with published bits per element, to all published digits.
TEST(BitsPerElement, PublishedTable) {
  const auto paper = [](double bits, double metadata, int64_t group, int64_t sink, int64_t recent,
                        int64_t tokens) {
    return PaperBitsPerElement({.payload_bits = bits,
                                .metadata_bits = metadata,
                                .quant_group_size = group,
                                .sink_tokens = sink,
                                .recent_tokens = recent},
                               tokens);
  };
  EXPECT_DOUBLE_EQ(paper(2, 32, 128, 0, 0, 1000), 2.25);  // naive and QuaRot INT2
  EXPECT_DOUBLE_EQ(paper(4, 32, 128, 0, 0, 1000), 4.25);  // SAW-INT4
  EXPECT_DOUBLE_EQ(paper(3, 32, 128, 0, 0, 1000), 3.25);  // TurboQuant K3V3
  EXPECT_NEAR(paper(2, 32, 128, 64, 256, 131072), 2.28357, 5e-6);
  EXPECT_NEAR(paper(2, 32, 128, 64, 256, 32768), 2.38428, 5e-6);
  EXPECT_NEAR(paper(2, 32, 128, 64, 256, 65536), 2.31714, 5e-6);
  EXPECT_NEAR(paper(2, 32, 128, 32, 0, 32768), 2.26343, 5e-6);      // KIVI with sinks
  EXPECT_NEAR(paper(2.125, 32, 128, 32, 0, 32768), 2.38831, 5e-6);  // Kitty
  EXPECT_DOUBLE_EQ(paper(3, 6, 16, 0, 0, 1000), 3.375);             // KVarN
  EXPECT_DOUBLE_EQ(paper(2, 32, 32, 0, 0, 1000), 3.0);              // OScaR
  EXPECT_NEAR(paper(2, CacheLayout().actual_metadata_bits, 128, 64, 256, 131072), 2.533, 5e-4);
}

TEST(BitsPerElement, ShortSequencesAreKeptInFull) {
  EXPECT_DOUBLE_EQ(PaperBitsPerElement({}, 320), 16);
  EXPECT_DOUBLE_EQ(PaperBitsPerElement({}, 1), 16);
  EXPECT_DOUBLE_EQ(PaperBitsPerElement({.payload_bits = 16}, 100000), 16);
  EXPECT_DOUBLE_EQ(ActualBitsPerElement({.payload_bits = 16}, 100000), 16);
}

// With 1000 tokens, 64 sinks and 256 recent tokens, 680 tokens leave the ring: 85 whole pages of 8.
// The sinks and the ring of 263 tokens take 16 bits per element.
TEST(BitsPerElement, ActualBytesCountPagesAndRing) {
  EXPECT_DOUBLE_EQ(ActualBitsPerElement({}, 1000), (680 * 2.5 + 16 * (64 + 263)) / 1000);
  EXPECT_DOUBLE_EQ(ActualBitsPerElement({}, 1007), (680 * 2.5 + 16 * (64 + 263)) / 1007);
  EXPECT_DOUBLE_EQ(ActualBitsPerElement({}, 1008), (688 * 2.5 + 16 * (64 + 263)) / 1008);
  // At 100 tokens the whole ring is allocated, although most of it is empty.
  EXPECT_DOUBLE_EQ(ActualBitsPerElement({}, 100), 16.0 * (64 + 263) / 100);
}

TEST(BitsPerElement, WithoutWindowsThePageIsRoundedUp) {
  const CacheLayout layout = {.sink_tokens = 0, .recent_tokens = 0};
  EXPECT_DOUBLE_EQ(ActualBitsPerElement(layout, 8), 2.5);
  EXPECT_DOUBLE_EQ(ActualBitsPerElement(layout, 9), 16 * 2.5 / 9);
}

// 320 of 8192 tokens stay in bf16, and the ring has room for 7 more.
TEST(BitsPerElement, TheBitsOfAChoiceAreExplained) {
  Json choice = {
      {"bits_spent", 2.75}, {"bits_stored", 3}, {"sink_tokens", 64}, {"recent_tokens", 256}};
  EXPECT_EQ(
      BitsText({{"auto", choice}}),
      "2.75 per value in codes, 3 with scales and zeros, 3.52 in a cache of 8192 tokens whose "
      "64 first and 256 last are in bf16");
  choice["sink_tokens"] = choice["recent_tokens"] = 0;
  EXPECT_EQ(BitsText({{"auto", choice}}), "2.75 per value in codes, 3 with scales and zeros");
  EXPECT_EQ(BitsText({{"sink_tokens", 64}}), "");
}

// Computes the published bytes per token of Qwen3-8B: 36 layers, 8 KV heads of dimension 128, K and
// V.
TEST(BitsPerElement, BytesPerToken) {
  const double elements = 2.0 * 36 * 8 * 128;
  const CacheLayout naive = {.sink_tokens = 0, .recent_tokens = 0};
  EXPECT_DOUBLE_EQ(elements * kKeptBits / 8, 147456);
  EXPECT_DOUBLE_EQ(elements * PaperBitsPerElement(naive, 1000) / 8, 20736);
  EXPECT_DOUBLE_EQ(elements * ActualBitsPerElement(naive, 1000) / 8, 23040);
}

}  // namespace
}  // namespace oscar
