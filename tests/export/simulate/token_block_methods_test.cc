// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the table's methods that quantize blocks of tokens, on heads whose dimension is not a
// multiple of a group.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string_view>

#include "capture/model/run/device.h"
#include "export/simulate/cache_method.h"
#include "export/simulate/codecs/variance_tensor.h"
#include "export/simulate/methods/oscar_kv.h"
#include "tests/export/simulate/row_context.h"

namespace oscar {
namespace {

constexpr std::string_view kNames[] = {
    "kivi2",      "kivi2_sink",     "kivi2_g32",     "kivi4",      "kivi4_g32",
    "kitty",      "kitty_pro",      "kitty_kernel",  "kvarn_k4v2", "kvarn_k4v4",
    "kvarn_k2v2", "kvarn_k4v2_g64", "kvarn_k4v2_i8", "oscar_kv",   "kvlinc2_uncorrected"};

const RowGeometry kOdd = {.head_dim = 96, .v_head_dim = 80, .sequences = 1, .tokens = 700};

double RootRelativeError(const at::Tensor& y, const at::Tensor& x) {
  const at::Tensor exact = x.to(y.scalar_type());
  return ((y - exact).square().sum() / exact.square().sum()).sqrt().item<double>();
}

TEST(TokenBlockMethods, StoreRowsOfAnyHead) {
  RowContext rows(kOdd);
  const CacheSides sides = {rows.rows().k[0], rows.rows().v[0]};
  for (const std::string_view name : kNames) {
    SCOPED_TRACE(name);
    const CacheMethod& method = CacheMethodNamed(name);
    EXPECT_FALSE(method.takes_clip || method.takes_windows || method.null_control);
    const LayerCache cache = method.make(rows.context(), 0, {});
    const CachedRows stored = cache.store(sides);
    EXPECT_EQ(stored.quantized.k.sizes(), sides.k.sizes());
    EXPECT_EQ(stored.quantized.v.sizes(), sides.v.sizes());
    EXPECT_FALSE(stored.exact.k.defined() || cache.queries);
    for (const double error : {RootRelativeError(stored.quantized.k, sides.k),
                               RootRelativeError(stored.quantized.v, sides.v)}) {
      EXPECT_GT(error, 0.005);
      EXPECT_LT(error, 0.9);
    }
    // Most tokens are quantized, but the newest keys are not.
    EXPECT_GT(cache.k_exact.quantized_end(700), 500);
    EXPECT_LT(cache.k_exact.quantized_end(700), 700);
    EXPECT_GT(cache.v_exact.quantized_end(700), 500);
    const CacheCost cost = method.cost(rows.context(), {}, 100000);
    EXPECT_GT(cost.actual, cost.paper);
    EXPECT_LT(cost.actual, cost.paper + 0.3);
  }
}

// The context says where decoding begins. Only Kitty depends on it.
TEST(TokenBlockMethods, KittyKnowsThePrefill) {
  MethodContext::Options options;
  options.prefill_tokens = 200;
  RowContext split(kOdd, options), any(kOdd);
  const CacheMethod& kitty = CacheMethodNamed("kitty");
  EXPECT_EQ(kitty.make(split.context(), 0, {}).k_exact.quantized_end(289), 160);
  EXPECT_EQ(kitty.make(any.context(), 0, {}).k_exact.quantized_end(289), 288);
}

TEST(TokenBlockMethods, AGpuGivesTheSameBits) {
  if (NumGpus() == 0) GTEST_SKIP() << "no GPU here";
  RowContext rows(kOdd);
  const CacheSides sides = {rows.rows().k[0].to(at::kFloat), rows.rows().v[0].to(at::kFloat)};
  const auto on_gpu = [](const at::Tensor& x) { return x.to(at::kCUDA); };
  for (const std::string_view name : {"kivi2", "kivi4_g32", "kitty", "kitty_kernel"}) {
    SCOPED_TRACE(name);
    const LayerCache cache = CacheMethodNamed(name).make(rows.context(), 0, {});
    const CacheSides cpu = cache.store(sides).quantized,
                     gpu = cache.store({on_gpu(sides.k), on_gpu(sides.v)}).quantized;
    EXPECT_TRUE(gpu.k.cpu().equal(cpu.k));
    EXPECT_TRUE(gpu.v.cpu().equal(cpu.v));
  }
  const at::Tensor blocks = sides.k.narrow(0, 0, 640).unflatten(0, {5, 128});
  const at::Tensor tiles = blocks.permute({0, 2, 3, 1}).contiguous();
  EXPECT_TRUE(DecodeKvarnTiles(EncodeKvarnTiles(on_gpu(tiles), 2, 16))
                  .cpu()
                  .equal(DecodeKvarnTiles(EncodeKvarnTiles(tiles, 2, 16))));
  EXPECT_TRUE(OscarKvKeysRoundTrip(on_gpu(blocks), OscarKvRule(2))
                  .cpu()
                  .equal(OscarKvKeysRoundTrip(blocks, OscarKvRule(2))));
}

}  // namespace
}  // namespace oscar
