// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the published bits per element of all methods that quantize blocks of tokens, and the bits
// that are really allocated.
#include <gtest/gtest.h>

#include <vector>

#include "export/simulate/methods/kitty.h"
#include "export/simulate/methods/kivi.h"
#include "export/simulate/methods/kvarn.h"
#include "export/simulate/methods/oscar_kv.h"
#include "export/simulate/token_blocks.h"

namespace oscar {
namespace {

constexpr int64_t kEndless = int64_t{1} << 40, k32K = 32768;

std::vector<LayerSpec> Layers(int64_t head_dim = 128, int64_t num_kv_heads = 8) {
  LayerSpec layer;
  layer.attention.num_kv_heads = num_kv_heads;
  layer.attention.head_dim = layer.attention.v_head_dim = head_dim;
  return {layer, layer};
}

TEST(TokenBlockCost, Kivi) {
  const auto cost = [](const KiviOptions& options, int64_t tokens) {
    return KiviCost(options, Layers(), tokens);
  };
  EXPECT_DOUBLE_EQ(cost({}, k32K).paper, 2.25);
  EXPECT_NEAR(cost({.sink = 32}, k32K).paper, 2.26343, 5e-6);
  EXPECT_DOUBLE_EQ(cost({.quant_group_size = 32}, k32K).paper, 3.0);
  EXPECT_DOUBLE_EQ(cost({.bits = 4}, k32K).paper, 4.25);
  // The residual adds (16 - b - M/g) (r_K + r_V) / (2 L) bits, with r_K = 100 and r_V = 128.
  const int64_t tokens = k32K + 100;
  EXPECT_NEAR(cost({}, tokens).actual, 2.25 + 13.75 * (100 + 128) / (2.0 * tokens), 1e-9);
  EXPECT_DOUBLE_EQ(cost({}, 127).actual, 16);
}

TEST(TokenBlockCost, Kitty) {
  const auto cost = [](const KittyOptions& options, int64_t tokens) {
    return KittyCost(options, Layers(), tokens);
  };
  EXPECT_NEAR(cost({}, k32K).paper, 2.38831, 5e-6);
  EXPECT_NEAR(cost({}, kEndless).paper, 2.375, 1e-6);
  EXPECT_NEAR(cost({.boosted = 0.25}, kEndless).paper, 2.5, 1e-6);
  EXPECT_NEAR(cost({.boosted = 0}, kEndless).paper, 2.25, 1e-6);
  EXPECT_NEAR(cost({.boosted = 1}, kEndless).paper, 3.25, 1e-6);
  // Index bytes add 8 / 128 bits to keys, on average 0.03125 over keys and values.
  EXPECT_NEAR(cost({}, kEndless).actual, 2.375 + 8.0 / 128 / 2, 1e-6);
  // Just after a page was filled, 127 pages of keys and 126 * 128 tokens of values are quantized.
  // Buffers of 160 tokens, one for keys and one for values, take 16 bits per value.
  const int64_t tokens = 32 + 128 * 127;
  EXPECT_NEAR(cost({}, tokens).actual * 2 * static_cast<double>(tokens),
              127 * 128 * (2.5 + 0.0625) + 126 * 128 * 2.25 + 2 * 160 * 16, 1e-6);
}

TEST(TokenBlockCost, Kvarn) {
  const auto paper = [](const KvarnOptions& options) {
    return KvarnCost(options, Layers(), kEndless).paper;
  };
  EXPECT_NEAR(paper({}), 3.375, 1e-6);
  EXPECT_NEAR(paper({.v_bits = 4}), 4.375, 1e-6);
  EXPECT_NEAR(paper({.k_bits = 2}), 2.375, 1e-6);
  EXPECT_NEAR(paper({.tile = 64}), 3.5625, 1e-6);
  // A tile takes 13824 bytes per head. The sink block and one unfinished tile are float16.
  const double bytes = 10 * 13824 + 2 * 256 * 128 * 2;
  EXPECT_NEAR(KvarnCost({}, Layers(), 128 + 10 * 128).actual, 8 * bytes / (2 * 128 * 1408.0), 1e-9);
}

TEST(TokenBlockCost, OscarKv) {
  const CacheCost cost = OscarKvCost({}, Layers(), kEndless);
  EXPECT_NEAR(cost.paper, 3.0, 1e-9);
  EXPECT_NEAR(16 / cost.paper, 5.33, 5e-3);
  // Each token also has a float32 norm for its keys.
  EXPECT_NEAR(cost.actual, 3.0 + 32.0 / (8 * 128) / 2, 1e-6);
  EXPECT_NEAR(OscarKvCost({}, Layers(), 100).actual, 16 + 32.0 / (8 * 128) / 2, 1e-9);
}

// In heads shorter than a group, values have more scales. Keys do not, because they have one per
// channel.
TEST(TokenBlockCost, ShortHeads) {
  EXPECT_DOUBLE_EQ(KiviCost({}, Layers(64), k32K).paper, 2.375);
  EXPECT_EQ(GroupWithin(64, 128), 64);
  EXPECT_EQ(GroupWithin(192, 128), 96);
  EXPECT_EQ(GroupWithin(256, 128), 128);
}

}  // namespace
}  // namespace oscar
