// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/stream_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

// The hidden states of 40 configurations of Qwen3-8B take 32.8 GB for 100,000 tokens in bf16.
// For a text of 4096 tokens, attention reads 2 * 8 * 128 values of 6 bytes per token and
// configuration.
TEST(StreamMemory, WhatDoesNotFitIsRefusedWithItsNumbers) {
  ModelSpec spec;
  spec.hidden_size = 4096;
  LayerSpec layer;
  layer.attention.num_kv_heads = 8;
  layer.attention.head_dim = layer.attention.v_head_dim = 128;
  spec.layers = {layer};
  const StreamMemoryNeed need =
      StreamMemory(spec, at::kBFloat16, std::vector<int64_t>(40, 100000), 4096);
  EXPECT_DOUBLE_EQ(need.hidden, 40.0 * 100000 * 4096 * 2);
  EXPECT_DOUBLE_EQ(need.rows, 40.0 * 4096 * 2 * 8 * 128 * 6);
  const auto bytes = static_cast<uint64_t>(need.hidden + need.rows);
  CheckStreamsFit(need, bytes, "cuda:0");
  const std::string what =
      ErrorOf<ResourceError>([&] { CheckStreamsFit(need, bytes - 1, "cuda:0"); });
  for (const char* part :
       {"40 configurations", "100000 tokens", "32.8 GB", "2.0 GB", "cuda:0", "34.8 GB"})
    EXPECT_TRUE(Says(what, part));
}

// Recall tasks run only on some arms, so streams differ in their number of tokens.
TEST(StreamMemory, AStreamCountsItsOwnTokens) {
  ModelSpec spec;
  spec.hidden_size = 64;
  const StreamMemoryNeed need =
      StreamMemory(spec, at::kFloat, std::vector<int64_t>{5000, 1000, 1000, 5000}, 1000);
  EXPECT_EQ(need.num_streams, 4);
  EXPECT_EQ(need.num_tokens, 5000);
  EXPECT_DOUBLE_EQ(need.hidden, 12000.0 * 64 * 4);
}

}  // namespace
}  // namespace oscar
