// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests AQUA-KV: its grids, its predictions, and that a validation gives each layer the rows that
// the cache of the layer before returned.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "calib/job/job_directory.h"
#include "export/simulate/codecs/higgs_tensor.h"
#include "export/simulate/rope_rows.h"
#include "export/validate/validation_observer.h"
#include "linalg/base/error.h"
#include "tests/export/validate/tiny_validation.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

const CacheMethod& AquaKv() { return CacheMethodNamed("aqua_kv_2"); }

double RelativeError(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor difference = actual.to(at::kDouble).sub(expected.to(at::kDouble));
  return difference.square().sum().div(expected.to(at::kDouble).square().sum()).item<double>();
}

// The relative error of 16 points for two normal values is at least 0.108. With 256 points it is
// smaller than that of the best 16 levels per value, 0.0095.
TEST(Higgs, GridsAreThoseOfNormalValues) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({3000, 128}, at::kDouble).mul_(7);
  EXPECT_NEAR(RelativeError(HiggsRoundTrip(x, 16), x), 0.108, 0.003);
  EXPECT_LT(RelativeError(HiggsRoundTrip(x, 256), x), 0.0092);
  EXPECT_GT(RelativeError(HiggsRoundTrip(x, 256), x), 0.0075);
  EXPECT_EQ(HiggsGroup(128), 128);
  EXPECT_EQ(HiggsGroup(2048), 1024);
  EXPECT_EQ(HiggsGroup(768), 256);
}

TEST(Higgs, IsThePlainOne) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({20, 4}, at::kDouble), read = HiggsRoundTrip(x, 16);
  const at::Tensor h =
      at::tensor({1., 1., 1., 1., 1., -1., 1., -1., 1., 1., -1., -1., 1., -1., -1., 1.},
                 at::kDouble)
          .view({4, 4})
          .div(2);
  const at::Tensor& grid = HiggsGrid(16);
  for (int64_t t = 0; t < x.size(0); ++t) {
    const at::Tensor y = at::matmul(x[t], h);
    const at::Tensor scale = y.norm().div(2).to(at::kHalf).to(at::kDouble);
    at::Tensor code = at::empty_like(y);
    for (int64_t i = 0; i < 4; i += 2) {
      const at::Tensor pair = y.slice(0, i, i + 2).div(scale);
      code.slice(0, i, i + 2).copy_(grid[grid.sub(pair).square().sum(1).argmin().item<int64_t>()]);
    }
    EXPECT_TRUE(at::matmul(code.mul(scale), h).allclose(read[t], 1e-9, 1e-9)) << t;
  }
}

// Two layers of the bundled model's shape; the second layer's rows are linear in the first's.
struct LinearLayers {
  TinyModel model;
  Artifact artifact = Artifact::Open(TinyArtifact());
  MethodContext context{artifact, model.spec.layers, {}};
  const AttentionSpec& spec = model.spec.layers[1].attention;
  int64_t channels = spec.num_kv_heads * spec.head_dim;
  at::Tensor k_map, v_map, shift;

  LinearLayers() {
    at::manual_seed(3);
    k_map = at::randn({channels, channels}, at::kDouble);
    v_map = at::randn({2 * channels, channels}, at::kDouble);
    shift = at::randn({channels}, at::kDouble).mul(20);
  }
  at::Tensor Heads(const at::Tensor& x) const {
    return x.view({x.size(0), spec.num_kv_heads, spec.head_dim});
  }
  // Returns random rows of `tokens` tokens, as they are read from the cache of the layer before.
  CacheSides Before(int64_t tokens) const {
    const auto draw = [&] { return Heads(at::randn({tokens, channels}, at::kDouble)); };
    return {ApplyRope(draw(), spec.rope), draw()};
  }
  // Returns rows that follow from `before`.
  CacheSides Behind(const CacheSides& before) const {
    const at::Tensor k = UndoRope(before.k, spec.rope).flatten(1).matmul(k_map).add(shift);
    const at::Tensor v = at::cat({k, before.v.flatten(1)}, 1).matmul(v_map);
    return {ApplyRope(Heads(k), spec.rope), Heads(v)};
  }
  LayerCache Fitted(const std::vector<CacheSides>& before, const std::vector<CacheSides>& own) {
    CalibrationRows rows;
    for (const CacheSides& sides : own) {
      rows.k.push_back(sides.k);
      rows.v.push_back(sides.v);
    }
    context.SetRows(rows);
    context.SetRowsBefore(before);
    return AquaKv().make(context, 1, {});
  }
};

TEST(AquaKv, WhatTheLayerBeforeSaysIsFree) {
  LinearLayers layers;
  const std::vector<CacheSides> before = {layers.Before(900), layers.Before(700)};
  const LayerCache cache =
      layers.Fitted(before, {layers.Behind(before[0]), layers.Behind(before[1])});
  const CacheSides other = layers.Before(150), x = layers.Behind(other);
  const CacheSides read = std::get<LayerCache::StoreBehind>(cache.otherwise)(x, other).quantized;
  EXPECT_LT(RelativeError(read.k, x.k), 1e-3);
  EXPECT_LT(RelativeError(read.v, x.v), 1e-3);
  EXPECT_EQ(cache.k_exact.sink, 4);
  EXPECT_EQ(cache.k_exact.quantized_end(4 + 128), 4);
  EXPECT_EQ(cache.k_exact.quantized_end(4 + 128 + 1), 4 + 128);
}

// If the layer before does not predict the rows, the residual is the whole row, stored in 2 bits.
TEST(AquaKv, WhatItDoesNotSayIsRounded) {
  LinearLayers layers;
  const std::vector<CacheSides> before = {layers.Before(4000)}, own = {layers.Before(4000)};
  const LayerCache cache = layers.Fitted(before, own);
  const CacheSides other = layers.Before(500), x = layers.Before(500);
  const CacheSides read = std::get<LayerCache::StoreBehind>(cache.otherwise)(x, other).quantized;
  EXPECT_NEAR(RelativeError(read.k, x.k), 0.108, 0.012);
  EXPECT_NEAR(RelativeError(read.v, x.v), 0.108, 0.012);
  layers.context.SetRowsBefore({});
  const CacheSides first = AquaKv().make(layers.context, 0, {}).store(x).quantized;
  EXPECT_LT(RelativeError(first.v, x.v), 0.0095);
  EXPECT_THROW(AquaKv().make(layers.context, 1, {}), InputError);
}

TEST(AquaKv, CostsMoreInTheFirstLayer) {
  LinearLayers layers;
  const auto num_layers = static_cast<double>(layers.model.spec.layers.size());
  const double of_norms = 16 / static_cast<double>(HiggsGroup(layers.channels));
  const CacheCost cost = AquaKv().cost(layers.context, {}, 1 << 20);
  EXPECT_NEAR(cost.paper, 2 + 2 / num_layers + of_norms, 1e-3);
  EXPECT_NEAR(cost.actual, cost.paper, 2e-3);
}

struct Call {
  at::Tensor before, out;  // keys
};

// Returns a method that adds 0.001 to every key and records the keys of the layer before.
CacheMethod Chained(std::vector<std::vector<Call>>& layers) {
  CacheMethod method = CacheMethodNamed("naive");
  method.takes_windows = false;
  method.needs_rows = method.reads_layer_before = true;
  const auto stored = [&layers](const CacheSides& rows, const CacheSides& before) {
    const at::Tensor k = rows.k.to(ResultType(rows.k)).add(0.001);
    layers.back().push_back({before.k, k});
    return CachedRows{.quantized = {k, rows.v.to(k.scalar_type())}};
  };
  method.make = [&layers, stored](const MethodContext& context, size_t layer_index,
                                  const ArmOptions&) {
    EXPECT_EQ(layer_index, layers.size());
    const std::span<const CacheSides> before = context.rows_before();
    EXPECT_EQ(before.size(), layer_index == 0 ? 0 : context.rows().k.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].k.equal(layers.back()[i].out));
    layers.emplace_back();
    LayerCache cache;
    cache.store = [stored](const CacheSides& rows) { return stored(rows, {}); };
    if (layer_index > 0) cache.otherwise = LayerCache::StoreBehind(stored);
    return cache;
  };
  return method;
}

TEST(LayerBefore, IsWhatItsCacheGaveBackForTheSameTokens) {
  std::vector<std::vector<Call>> layers;
  const auto method = std::make_shared<CacheMethod>(Chained(layers));
  method->name = "chained";
  ValidationOptions options = QuickOptions({"chained", "hadamard"});
  options.methods.windows = {0, 0};
  options.methods.guests = {method};
  const TinyModel model;
  ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                {.texts = TinyTexts(1, 2, 200), .calibration = TinyTexts(0, 2, 150)},
                Artifact::Open(TinyArtifact()), options, {});
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[0].size(),
            2u + 2 * 2);  // calibration texts; then texts end to end and locally
  for (size_t layer = 1; layer < 4; ++layer) {
    ASSERT_EQ(layers[layer].size(), layers[0].size());
    for (size_t call = 0; call < layers[layer].size(); ++call)
      EXPECT_TRUE(layers[layer][call].before.equal(layers[layer - 1][call].out));
  }
  for (const Call& call : layers[0]) EXPECT_FALSE(call.before.defined());
}

// The rows that a layer leaves for the next one are not saved, so a stopped run begins again.
TEST(LayerBefore, AStoppedValidationBeginsAgain) {
  const TinyModel model;
  const auto path = TestScratch("validation-job-layer-before") / "job";
  const auto layers_ran = [&](int stop_after) {
    JobDirectory job(path, {{"of", "a test"}}, false);
    int done = 0;
    ValidationHooks hooks;
    hooks.job = &job;
    hooks.on_layer = [&](size_t, size_t, double) { ++done; };
    hooks.stop_requested = [&] { return done == stop_after; };
    ValidationOptions options = QuickOptions({"aqua_kv_2"});
    options.methods.windows = {0, 0};
    options.local_only = true;
    try {
      ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                    {.texts = TinyTexts(1, 1, 200), .calibration = TinyTexts(0, 1, 300)},
                    Artifact::Open(TinyArtifact()), options, hooks);
    } catch (const Interrupted& stopped) {
      EXPECT_NE(std::string(stopped.what()).find("no results were kept"), std::string::npos);
    }
    return done;
  };
  EXPECT_EQ(layers_ran(2), 2);
  EXPECT_EQ(layers_ran(100), 4);
}

}  // namespace
}  // namespace oscar
