// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibrates models that are not plain dense decoders: experts that are loaded a few at a time,
// layers without a cache, latent attention. A resumed run must read and route the same tokens as an
// uninterrupted one, so their files are compared byte by byte.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "calib/fit/fit.h"
#include "calib/job/layer_file.h"
#include "calib/run/calibrate.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct FamilyModel {
  explicit FamilyModel(const std::string& family) : directory(TestData("families/" + family)) {}

  CalibrationInput Input(size_t length = 90) const {
    std::minstd_rand random(5);
    const auto vocabulary = static_cast<uint32_t>(std::min<int64_t>(64, spec.vocab_size));
    std::vector<std::vector<int32_t>> sequences(6, std::vector<int32_t>(length));
    for (auto& sequence : sequences) {
      for (int32_t& id : sequence) id = static_cast<int32_t>(random() % vocabulary);
    }
    LoopOptions loop = CalibrationLoopOptions();
    loop.expert_bytes = 1;  // loads one expert at a time
    CalibrationInput input{.source = std::make_shared<ModelSource>(checkpoint, spec, sequences,
                                                                   at::kCPU, at::kFloat, loop),
                           .device = at::kCPU,
                           .dtype = at::kFloat,
                           .options = {}};
    input.options.min_tokens = 1;
    input.options.sink_tokens = input.options.recent_tokens = 8;
    input.options.clip.quant_group_size = 0;
    input.options.automatic.enabled = false;
    return input;
  }

  fs::path directory;
  ModelSpec spec = ReadModelSpec(directory);
  Checkpoint checkpoint = Checkpoint::Open(directory);
};

TEST(FamiliesCalibration, ResumesAtTheLayerItReached) {
  for (const char* family : {"qwen3_next", "deepseek_v3", "gpt_oss"}) {
    const FamilyModel model(family);
    const fs::path scratch = TestScratch(std::string("resume_") + family);
    JobDirectory whole(scratch / "whole.job", {}, false);
    RunCalibration(model.Input(), whole, {});
    int layers = 0;
    std::vector<int> routed;
    CalibrationHooks hooks;
    hooks.on_layer = [&](const LayerProgress&) { ++layers; };
    hooks.on_experts = [&](const LayerSpec& layer, const std::vector<int64_t>&) {
      routed.push_back(layer.layer_id);
    };
    hooks.stop_requested = [&] { return layers == 1; };
    {
      JobDirectory job(scratch / "stopped.job", {}, false);
      EXPECT_THROW(RunCalibration(model.Input(), job, hooks), Interrupted) << family;
      EXPECT_EQ(job.finished_layers(), 1u);
    }
    const size_t routed_before = routed.size();
    hooks.stop_requested = nullptr;
    JobDirectory job(scratch / "stopped.job", {}, false);
    RunCalibration(model.Input(), job, hooks);
    const size_t num_layers = model.spec.layers.size();
    EXPECT_EQ(job.finished_layers(), num_layers);
    for (size_t i = 0; i < num_layers; ++i)
      EXPECT_EQ(ReadText(job.LayerPath(i)), ReadText(whole.LayerPath(i))) << family << " " << i;
    // The resumed run routes no layer a second time.
    for (size_t i = routed_before; i < routed.size(); ++i)
      EXPECT_GT(routed[i], routed[routed_before - 1]) << family;
  }
}

// The cache holds one latent for keys and values, so statistics describe the latent and one
// rotation serves both sides. The position part enters every logit.
TEST(FamiliesCalibration, LatentsHaveOneRotationForKeysAndValues) {
  const FamilyModel model("deepseek_v3");
  JobDirectory job(TestScratch("latent") / "latent.job", {}, false);
  const CalibrationInput input = model.Input();
  RunCalibration(input, job, {});
  const LatentSpec& latent = *model.spec.layers[0].attention.latent;
  for (size_t i = 0; i < 3; ++i) {
    const LayerResult result = ReadLayerFile(job.LayerPath(i));
    EXPECT_EQ(result.moments.num_kv_heads, 1);
    EXPECT_EQ(result.moments.head_dim, latent.rank);
    EXPECT_TRUE(result.moments.latent);
    EXPECT_EQ(result.k.rotation, result.v.rotation);
    EXPECT_EQ(result.k.clip_ratio, result.v.clip_ratio);
    for (const ArmResult& arm : result.arms) {
      EXPECT_GT(arm.kl_mean_no_windows, 0) << arm.name;
      EXPECT_LT(arm.kl_mean_no_windows, 1) << arm.name;
    }
  }
  // The fit uses the joint covariance of both sides.
  const LayerMoments m = ReadLayerFile(job.LayerPath(1)).moments;
  const Matrix q = m.QueryCovariance(0), v = m.ValueCovariance(0, input.options.fit.value_target);
  const Matrix joint = q / q.trace() + v / v.trace();
  const LayerFit fit = FitLayer(m, input.options.fit);
  double sum = 0;
  for (const double value : fit.k.eigenvalues) sum += value;
  EXPECT_NEAR(sum, joint.trace(), 1e-9);
  EXPECT_NEAR(sum, 2, 1e-9);
}

// A latent row is both key and value, so it has one transform, one clip ratio and one number of
// bits. They are chosen on held-out rows (latent_search_test.cc), and the published transform is
// fitted to all tokens.
TEST(FamiliesCalibration, ChoicesOfLatentsAreOfOneRow) {
  for (const char* family : {"deepseek_v3", "glm4_moe_lite", "glm_moe_dsa"}) {
    const FamilyModel model(family);
    CalibrationInput input = model.Input(40);
    input.options.automatic.enabled = true;
    input.options.automatic.bits = 10;  // 16 of 24 elements are quantized
    JobDirectory job(TestScratch(std::string("auto_") + family) / "auto.job", {}, false);
    RunCalibration(input, job, {});
    for (size_t i = 0; i < model.spec.layers.size(); ++i) {
      const LayerResult result = ReadLayerFile(job.LayerPath(i));
      const AutoChoice& choice = result.automatic;
      ASSERT_TRUE(choice.made) << family;
      EXPECT_EQ(choice.position_dim, 8) << family;
      EXPECT_EQ(choice.k.rotation, choice.v.rotation) << family;
      EXPECT_EQ(choice.k.query_rotation, choice.v.query_rotation) << family;
      EXPECT_EQ(choice.k.mean, choice.v.mean) << family;
      EXPECT_TRUE(choice.k.pair_scale.empty()) << family;
      ASSERT_EQ(choice.k_options.size(), choice.v_options.size());
      for (size_t bits = 0; bits < choice.k_options.size(); ++bits) {
        EXPECT_EQ(choice.k_options[bits].clip, choice.v_options[bits].clip);
        if (bits > 0) {
          EXPECT_LT(choice.v_options[bits].score, choice.v_options[bits - 1].score);
        }
      }
      EXPECT_EQ(choice.k_fallback, choice.v_fallback) << family;
      EXPECT_TRUE(choice.k_fallback.empty() || choice.keys.Name() == "oscar shared h_pbr");
      EXPECT_GT(choice.scores.size(), 30u) << family;
      for (const AutoArm& point : result.auto_arms)
        EXPECT_EQ(point.point.k_bits, point.point.v_bits) << family;
      EXPECT_TRUE(std::ranges::any_of(result.arms,
                                      [](const ArmResult& arm) { return arm.name == "auto"; }));
    }
  }
}

TEST(FamiliesCalibration, SaysWhatLatentsCannotHave) {
  const FamilyModel model("glm4_moe_lite");
  const auto refused = [&](const char* why, auto change) {
    CalibrationInput input = model.Input();
    input.options.automatic.enabled = true;
    change(input.options.automatic);
    EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { (void)CheckCalibration(input); }), why));
  };
  refused("any and sglang-oct have one", [](AutoOptions& o) { o.consumer = Consumer::kVllm; });
  refused("cannot be refined", [](AutoOptions& o) { o.refine = 10; });
  // 16 values at 2 bits with a scale and zero, and 8 values at 16 bits, take 8 bits per element.
  refused("scales and zeros take 8;", [](AutoOptions& o) { o.bits = 7.9; });
}

// The latent KV pool of sglang-oct does not clip and stores only 2 bits.
TEST(FamiliesCalibration, ChoicesForSglangDoNotClip) {
  const FamilyModel model("deepseek_v3");
  CalibrationInput input = model.Input();
  input.options.automatic.enabled = true;
  input.options.automatic.consumer = Consumer::kSglangOct;
  JobDirectory job(TestScratch("auto_oct") / "auto.job", {}, false);
  RunCalibration(input, job, {});
  for (size_t i = 0; i < 3; ++i) {
    const AutoChoice choice = ReadLayerFile(job.LayerPath(i)).automatic;
    ASSERT_EQ(choice.k_options.size(), 1u);
    EXPECT_EQ(choice.k_option().clip, std::vector<double>{1.0});
    EXPECT_EQ(choice.v_option().clip, std::vector<double>{1.0});
  }
}

// Sums products of queries and of outputs over all layers that read a cache.
struct ReadersObserver : LayerObserver {
  struct Sums {
    at::Tensor query, output;  // [num_kv_heads, dim, dim]
    std::set<int> readers;     // ids
  };
  void OnAttention(const AttentionView& view) override { Add(view); }
  void OnSharedAttention(const AttentionView& view) override { Add(view); }
  void Add(const AttentionView& view) {
    Sums& own = sums[view.layer_index];
    const auto product = [&](const at::Tensor& x) {  // [T, heads, dim]
      const at::Tensor rows = x.to(at::kDouble).view({x.size(0), view.k.size(1), -1, x.size(2)});
      return at::einsum("thgi,thgj->hij", {rows, rows});
    };
    const at::Tensor query = product(view.q), output = product(view.attn_out);
    own.query = own.query.defined() ? own.query + query : query;
    own.output = own.output.defined() ? own.output + output : output;
    own.readers.insert(view.layer.layer_id);
  }
  std::map<size_t, Sums> sums;  // by layer index
};

void ExpectMeanOverReaders(const std::vector<double>& found, const at::Tensor& sum,
                           size_t readers) {
  const at::Tensor expected = sum.div(static_cast<int64_t>(readers)).contiguous().view({-1});
  ASSERT_EQ(static_cast<int64_t>(found.size()), expected.numel());
  const at::Tensor own = at::tensor(found, at::kDouble);
  EXPECT_LT(own.sub(expected).norm().item<double>(), 1e-10 * expected.norm().item<double>());
}

// Compares the moments of every cache with sums over a run of the whole model. Returns how many
// layers read each cache.
std::vector<size_t> ExpectSharedStatistics(const FamilyModel& model, const JobDirectory& job) {
  CalibrationInput input = model.Input();
  ModelSource whole(model.checkpoint, model.spec, input.model()->sequences(), at::kCPU, at::kFloat);
  ReadersObserver observer;
  whole.Run(0, observer, [](size_t) { return true; });
  std::vector<size_t> readers;
  for (auto& [index, sums] : observer.sums) {
    const LayerMoments moments = ReadLayerFile(job.LayerPath(index)).moments;
    EXPECT_EQ(moments.tokens, input.num_tokens());
    ExpectMeanOverReaders(moments.query, sums.query, sums.readers.size());
    ExpectMeanOverReaders(moments.attention_output, sums.output, sums.readers.size());
    readers.push_back(sums.readers.size());
  }
  return readers;
}

TEST(FamiliesCalibration, SharedKeysAreFittedToAllWhoReadThem) {
  const FamilyModel model("gemma4_text-ple");
  JobDirectory job(TestScratch("shared") / "shared.job", {}, false);
  const CalibrationInput input = model.Input();
  EXPECT_EQ(input.source->first_shared_layer(), 0u);
  RunCalibration(input, job, {});
  EXPECT_EQ(ExpectSharedStatistics(model, job), (std::vector<size_t>{2, 2}));
}

// The last layer of the bundled model reads the keys and values of layer 1. Layer 0 is committed at
// once. The layers from 1 on wait for their readers, also in a resumed run.
TEST(FamiliesCalibration, ResumesBeforeTheFirstSharedLayer) {
  FamilyModel model("../tiny-qwen3");
  ASSERT_EQ(model.spec.layers.size(), 4u);
  LayerSpec reader = model.spec.layers.back();
  model.spec.layers.pop_back();
  reader.attention.shared_kv = 1;
  model.spec.uncached.push_back(reader);
  const fs::path scratch = TestScratch("resume_shared");
  JobDirectory whole(scratch / "whole.job", {}, false);
  RunCalibration(model.Input(), whole, {});
  EXPECT_EQ(ExpectSharedStatistics(model, whole), (std::vector<size_t>{1, 2, 1}));
  // The hook is called twice for a layer that is committed and once for one that is not.
  for (const int asked : {2, 3, 4}) {
    const fs::path path = scratch / fmt::format("stopped{}.job", asked);
    int asks = 0;
    CalibrationHooks hooks;
    hooks.stop_requested = [&] { return ++asks >= asked; };
    {
      JobDirectory job(path, {}, false);
      EXPECT_THROW(RunCalibration(model.Input(), job, hooks), Interrupted);
      EXPECT_EQ(job.finished_layers(), 1u);
    }
    JobDirectory job(path, {}, false);
    RunCalibration(model.Input(), job, {});
    ASSERT_EQ(job.finished_layers(), 3u);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(ReadText(job.LayerPath(i)), ReadText(whole.LayerPath(i))) << asked << " " << i;
  }
}

}  // namespace
}  // namespace oscar
