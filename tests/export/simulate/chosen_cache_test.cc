// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the automatic choice in simulation: read from the artifact, read from files exported from
// it, and as serving runtimes store it.
#include "export/simulate/chosen_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calib/cache/side_tensors.h"
#include "export/artifact/chosen_rotations.h"
#include "export/formats/rotation_pair.h"
#include "export/simulate/runtime_choice.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/export/simulate/row_context.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Rows have 64 values, because shorter rows are never clipped by bisection.
constexpr RowGeometry kGeometry{.head_dim = 64, .v_head_dim = 64, .sequences = 2, .tokens = 96};
constexpr CacheWindows kWindows = {8, 16};

// An artifact with one layer per recipe, all fitted to the same rows, and its context.
class ChosenContext {
 public:
  ChosenContext(const std::string& name, const std::vector<SampleRecipe>& recipes,
                Consumer consumer, int64_t prefill = 1000)
      : rows_(RandomCalibrationRows(kGeometry)),
        scratch_(TestScratch("auto_choice_" + name)),
        artifact_(Write(recipes, consumer)) {
    for (size_t i = 0; i < recipes.size(); ++i) {
      LayerSpec layer;
      layer.layer_id = static_cast<int>(i);
      layer.attention.num_q_heads = kGeometry.num_q_heads;
      layer.attention.num_kv_heads = kGeometry.num_kv_heads;
      layer.attention.head_dim = layer.attention.v_head_dim = kGeometry.head_dim;
      layer.attention.rope.rotary_dim = kGeometry.head_dim;
      layers_.push_back(layer);
    }
    MethodContext::Options options;
    options.prefill_tokens = prefill;
    options.windows = kWindows;
    context_ = std::make_unique<MethodContext>(artifact_, layers_, options);
  }

  const Artifact& artifact() const { return artifact_; }
  const fs::path& scratch() const { return scratch_; }
  const MethodContext& context() const { return *context_; }
  LayerCache Cache(std::string_view method, size_t layer) const {
    return CacheMethodNamed(method).make(*context_, layer, {.windows = true});
  }
  bool Has(std::string_view method) const { return CacheMethodNamed(method).available(*context_); }
  CacheSides sides() const { return {rows_.k[0], rows_.v[0]}; }
  at::Tensor queries() const { return rows_.q[0].slice(0, 60, 96); }

 private:
  Artifact Write(const std::vector<SampleRecipe>& recipes, Consumer consumer) const {
    // Every runtime can load the choice for llama.cpp, which has the most restrictive rules.
    const AutoOptions options{.enabled = consumer == Consumer::kLlamacpp, .consumer = consumer};
    WriteChosenArtifact(scratch_ / "a", recipes, options, [&](int id) {
      LayerMoments moments = MomentsOf(rows_, kGeometry);
      moments.layer_id = id;
      return moments;
    });
    return Artifact::Open(scratch_ / "a");
  }

  CalibrationRows rows_;
  fs::path scratch_;
  Artifact artifact_;
  std::vector<LayerSpec> layers_;
  std::unique_ptr<MethodContext> context_;
};

CacheSide SideOf(const RotationLayer& layer) {
  const std::vector<int64_t>& shape = layer.rotation->shape;
  return {.num_rotations = shape.size() == 3 ? shape[0] : 1,
          .dim = shape.back(),
          .rotation = Doubles(layer.rotation),
          .query_rotation = Doubles(layer.q_rotation),
          .pair_scale = {},
          .mean = Doubles(layer.k_mean),
          .feedback = {}};
}

void ExpectSame(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (!a.defined()) return;
  EXPECT_TRUE(a.equal(b)) << what << ": " << (a - b).abs().max().item<double>();
}

TEST(AutoChoice, AnArmMadeOfExportedTensorsEqualsTheArtifactsOwn) {
  const ChosenContext context("v3", SampleRecipes(), Consumer::kSglangOct);
  const SglangChoice exported = ChosenForRuntime(context.artifact(), Consumer::kSglangOct, true);
  WriteSglangChoice(context.scratch() / "v3", exported, SglangVersion::kV3);
  const auto files = FindRotationPair(context.scratch() / "v3").value();
  const RotationPair pair = OpenRotationPair(files.first, files.second);
  for (size_t i = 0; i < pair.k.layers.size(); ++i) {
    StoredChoice choice{.k = SideOf(pair.k.layers[i]),
                        .v = SideOf(pair.v.layers[i]),
                        .k_codes = {.clip = {exported.serving.k_clip_ratio},
                                    .quant_group_size = exported.serving.quant_group_size},
                        .v_codes = {.clip = {exported.serving.v_clip_ratio},
                                    .quant_group_size = exported.serving.quant_group_size}};
    // The files belong to a folded checkpoint, so they do not contain the pair scales.
    choice.k.pair_scale = context.context().Stored(i).automatic->k.pair_scale;
    const ExactTokens exact = ExactInWindows(kWindows);
    const LayerCache mine = ChoiceCache(choice, kGeometry.num_kv_heads, exact),
                     own = context.Cache("auto", i);
    const CachedRows a = mine.store(context.sides()), b = own.store(context.sides());
    const std::string what = "layer " + std::to_string(i);
    ExpectSame(a.quantized.k, b.quantized.k, what + " k");
    ExpectSame(a.quantized.v, b.quantized.v, what + " v");
    ExpectSame(a.exact.k, b.exact.k, what + " exact k");
    ExpectSame(mine.queries(context.queries()), own.queries(context.queries()), what + " q");
    EXPECT_GT((b.quantized.k - context.sides().k).abs().max().item<double>(), 0.1);
  }
}

// Returns the relative difference between the logits of `a` and `b`. Removes each query's mean
// logit, which softmax ignores.
double LogitDistance(const CachedRows& a, const at::Tensor& qa, const CachedRows& b,
                     const at::Tensor& qb) {
  const auto logits = [&](const at::Tensor& k, const at::Tensor& q) {
    const at::Tensor heads = q.view({q.size(0), k.size(1), -1, k.size(2)}).permute({1, 2, 0, 3});
    const at::Tensor x = at::matmul(heads, k.permute({1, 2, 0}).unsqueeze(1).to(q.scalar_type()));
    return x.sub(x.mean(-1, true));
  };
  const at::Tensor x = logits(a.quantized.k, qa), y = logits(b.quantized.k, qb);
  return (x - y).norm().div(y.norm()).item<double>();
}

// The prompt is written by the kernel that clips by sorting, so SGLang's October tree stores what
// the ideal arm stores. Only the key means differ, because they are rounded to bf16.
TEST(AutoChoice, TheOctoberTreeHoldsWhatWasChosen) {
  const ChosenContext context("oct", SampleRecipes(), Consumer::kSglangOct);
  EXPECT_TRUE(context.Has("runtime_sglang_oct_auto"));
  EXPECT_FALSE(context.Has("runtime_sglang_auto"));
  EXPECT_FALSE(context.Has("runtime_vllm_auto"));
  for (size_t i = 0; i < SampleRecipes().size(); ++i) {
    const LayerCache runtime = context.Cache("runtime_sglang_oct_auto", i),
                     ideal = context.Cache("auto", i);
    const CachedRows a = runtime.store(context.sides()), b = ideal.store(context.sides());
    const at::Tensor qa = runtime.queries(context.queries()), qb = ideal.queries(context.queries());
    ExpectSame(a.quantized.v, b.quantized.v, "values of layer " + std::to_string(i));
    if (!SampleRecipes()[i].keys.centred) {
      EXPECT_LT((a.quantized.k - b.quantized.k).abs().max().item<double>(), 1e-4) << i;
      EXPECT_LT(LogitDistance(a, qa, b, qb), 1e-5) << i;
    } else {
      EXPECT_LT(LogitDistance(a, qa, b, qb), 0.1) << i;
      // The runtime without the choice differs more, so the mean and the matrices are applied.
      const CachedRows without = context.Cache("runtime_sglang_oct", i).store(context.sides());
      EXPECT_GT(LogitDistance(without, qa, b, qb), 0.2) << i;
    }
  }
}

// Tokens that leave the recent window after the prompt are quantized by another kernel, which clips
// by bisection.
TEST(AutoChoice, DecodedTokensOfARuntimeAreItsFlushes) {
  const ChosenContext prompt("prompt", SampleRecipes(), Consumer::kSglangOct, 1000),
      decoded("decoded", SampleRecipes(), Consumer::kSglangOct, 10);
  const auto stored = [](const ChosenContext& context) {
    return context.Cache("runtime_sglang_oct_auto", 1).store(context.sides()).quantized.k;
  };
  const at::Tensor a = stored(prompt), b = stored(decoded);
  EXPECT_FALSE(a.equal(b));
  EXPECT_LT((a - b).norm().div(a.norm()).item<double>(), 0.2);
}

TEST(AutoChoice, EveryRuntimeLoadsItsChoice) {
  const std::vector<SampleRecipe> recipes(5, {.keys = {.kind = KeyTransformKind::kPairScaled},
                                              .values = {},
                                              .k_clip = {0.92},
                                              .v_clip = {0.92}});
  const ChosenContext context("all", recipes, Consumer::kLlamacpp);
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (!runtime.chosen) continue;
    SCOPED_TRACE(std::string(runtime.method));
    EXPECT_TRUE(context.Has(runtime.method));
    EXPECT_FALSE(ServedChoice(runtime, context.artifact()).empty());
    const LayerCache cache = context.Cache(runtime.method, 2);  // vLLM quantizes only this layer
    const CachedRows cached = cache.store(context.sides());
    // Rows are quantized, but with a small error, because pair scales shrink outlier channels.
    const double error = (cached.quantized.k - context.sides().k)
                             .norm()
                             .div(context.sides().k.norm())
                             .item<double>();
    EXPECT_GT(error, 0.05);
    EXPECT_LT(error, 0.5);
    // Windows hold the rows of the folded model in bf16.
    ASSERT_TRUE(cached.exact.k.defined());
    EXPECT_LT((cached.exact.k - context.sides().k).norm().item<double>(),
              context.sides().k.norm().item<double>() / 128);
    EXPECT_FALSE(cached.exact.k.equal(context.sides().k));
    EXPECT_LT((cache.queries(context.queries()) - context.queries()).norm().item<double>(),
              context.queries().norm().item<double>() / 64);
  }
}

// Whether `method` is available if the artifact's layers have `stored` KV heads and the model's
// layers have `model` KV heads.
bool Available(const std::string& name, std::vector<int64_t> stored, std::vector<int64_t> model,
               std::string_view method) {
  const auto with_heads = [](int64_t heads) {
    RowGeometry geometry = kGeometry;
    geometry.num_kv_heads = heads;
    return geometry;
  };
  const fs::path path = TestScratch("heads_" + name) / "a";
  WriteChosenArtifact(path, std::vector<SampleRecipe>(stored.size()), {}, [&](int id) {
    const RowGeometry geometry = with_heads(stored.at(static_cast<size_t>(id)));
    LayerMoments moments = MomentsOf(RandomCalibrationRows(geometry), geometry);
    moments.layer_id = id;
    return moments;
  });
  std::vector<LayerSpec> layers;
  for (const int64_t heads : model) {
    LayerSpec layer;
    layer.layer_id = static_cast<int>(layers.size());
    layer.attention.num_q_heads = kGeometry.num_q_heads;
    layer.attention.num_kv_heads = heads;
    layer.attention.head_dim = layer.attention.v_head_dim = kGeometry.head_dim;
    layers.push_back(layer);
  }
  const Artifact artifact = Artifact::Open(path);
  const MethodContext context(artifact, layers, {});
  return CacheMethodNamed(method).available(context);
}

// A method needs its rotations in every layer, not only in the first. Imported artifacts may have
// layers with one rotation for all heads, and layers may differ in the number of heads.
TEST(StoredRotations, WhatAMethodNeedsIsThereInEveryLayer) {
  for (const char* method : {"oscar_per_head", "runtime_sglang_oct"}) {
    EXPECT_TRUE(Available("a", {2, 2}, {2, 2}, method)) << method;
    EXPECT_TRUE(Available("b", {1, 2}, {1, 2}, method)) << method;
    EXPECT_FALSE(Available("c", {2, 1}, {2, 2}, method)) << method;
    EXPECT_FALSE(Available("d", {1, 2}, {2, 2}, method)) << method;
  }
  for (const char* method : {"oscar_shared", "oscar_shared_fitted", "runtime_sglang"})
    EXPECT_TRUE(Available("e", {2, 1}, {2, 2}, method)) << method;
}

TEST(AutoChoice, HeadsMayHaveBitsOfTheirOwn) {
  const ChosenContext context("bits", {{.keys = {}, .values = {}}}, Consumer::kAny);
  StoredChoice choice = *context.context().Stored(0).automatic;
  const auto keys = [&](std::vector<int> bits, std::vector<double> clip) {
    choice.k_codes.bits = std::move(bits);
    choice.k_codes.clip = std::move(clip);
    return ChoiceCache(choice, kGeometry.num_kv_heads, {}).store(context.sides()).quantized.k;
  };
  const at::Tensor mixed = keys({2, 4}, {0.92, 0.99}), two = keys({2}, {0.92}),
                   four = keys({4}, {0.99});
  EXPECT_TRUE(mixed.select(1, 0).equal(two.select(1, 0)));
  EXPECT_TRUE(mixed.select(1, 1).equal(four.select(1, 1)));
  EXPECT_FALSE(mixed.equal(two));
}

TEST(AutoChoice, ARuntimeWithoutAChoiceSaysSo) {
  const ChosenContext context("refused", SampleRecipes(), Consumer::kSglangOct);
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (!runtime.chosen || runtime.runtime == "sglang-oct") continue;
    EXPECT_TRUE(ServedChoice(runtime, context.artifact()).empty());
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { LoadChoice(runtime, context.context(), 0); }),
                     "contains no automatic choice for"));
  }
}

}  // namespace
}  // namespace oscar
