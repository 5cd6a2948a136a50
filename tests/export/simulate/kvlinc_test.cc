// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares KVLinC's quantizers with KIVI's, which have the same format.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "export/simulate/methods/kivi.h"
#include "export/simulate/token_blocks.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

constexpr const char* kName = "kvlinc2_uncorrected";

TEST(KvLinc, IsKiviWithTurnedValues) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  const CacheSides read = Stored(rows, kName, x), kivi = Stored(rows, "kivi2", x);
  EXPECT_TRUE(read.k.equal(kivi.k));
  const CacheSides turned = Stored(rows, "kivi2", {x.k, HadamardRows(x.v)});
  EXPECT_LT((HadamardRows(read.v) - turned.v).abs().max().item<double>(), 1e-4);
  const LayerCache cache = CacheMethodNamed(kName).make(rows.context(), 0, {});
  EXPECT_EQ(cache.k_exact.quantized_end(256), 128);
  EXPECT_EQ(cache.v_exact.quantized_end(300), 300 - 129);
}

TEST(KvLinc, CostsWhatKivisFormatCosts) {
  RowContext rows({.head_dim = 128, .v_head_dim = 128});
  const CacheCost cost = CacheMethodNamed(kName).cost(rows.context(), {}, 1 << 17);
  EXPECT_DOUBLE_EQ(cost.paper, 2.25);
  EXPECT_NEAR(cost.actual, 2.25, 0.02);
}

}  // namespace
}  // namespace oscar
