// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibrations of models that are not plain decoders: experts that come by in runs, layers without
// a cache, latent attention. Trap: a resumed run must read and route what the first one did, so its
// files are compared byte by byte.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "calib/calibrate.h"
#include "calib/fit.h"
#include "calib/layer_file.h"
#include "linalg/error.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct FamilyModel {
  explicit FamilyModel(const std::string& family) : directory(TestData("families/" + family)) {}

  CalibrationInput Input() const {
    std::minstd_rand random(5);
    std::vector<std::vector<int32_t>> sequences(6, std::vector<int32_t>(90));
    for (auto& sequence : sequences) {
      for (int32_t& id : sequence) id = static_cast<int32_t>(random() % 64);
    }
    LoopOptions loop = CalibrationLoopOptions();
    loop.expert_bytes = 1;  // an expert at a time
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
      EXPECT_EQ(Bytes(job.LayerPath(i)), Bytes(whole.LayerPath(i))) << family << " " << i;
    // No layer was routed twice.
    for (size_t i = routed_before; i < routed.size(); ++i)
      EXPECT_GT(routed[i], routed[routed_before - 1]) << family;
  }
}

// What the cache holds is one latent for keys and values, so the statistics are of it, one rotation
// serves both sides, and the part with position enters every logit.
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
    EXPECT_TRUE(SameKeysAndValues(result.moments));
    EXPECT_EQ(result.k.rotation, result.v.rotation);
    EXPECT_EQ(result.k.clip_ratio, result.v.clip_ratio);
    for (const ArmResult& arm : result.arms) {
      EXPECT_GT(arm.kl_mean_no_windows, 0) << arm.name;
      EXPECT_LT(arm.kl_mean_no_windows, 1) << arm.name;
    }
  }
  // The joint covariance, not that of one side.
  const LayerMoments m = ReadLayerFile(job.LayerPath(1)).moments;
  const Matrix q = m.QueryCovariance(0), v = m.ValueCovariance(0, input.options.fit.value_target);
  const Matrix joint = q / q.trace() + v / v.trace();
  const LayerFit fit = FitLayer(m, input.options.fit);
  double sum = 0;
  for (const double value : fit.k.eigenvalues) sum += value;
  EXPECT_NEAR(sum, joint.trace(), 1e-9);
  EXPECT_NEAR(sum, 2, 1e-9);
}

TEST(FamiliesCalibration, AutomaticChoicesOfLatentsAreRefused) {
  const FamilyModel model("glm4_moe_lite");
  CalibrationInput input = model.Input();
  input.options.automatic.enabled = true;
  try {
    (void)CheckCalibration(input);
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--no-auto"), std::string::npos);
  }
}

}  // namespace
}  // namespace oscar
