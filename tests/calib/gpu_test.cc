// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The calibration on a GPU: agrees with the CPU, repeats itself, and never waits for the device
// inside the token loop. Run by `ctest --preset cuda` on a machine that has one; elsewhere every
// test here is a skip.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "calib/calibrate.h"
#include "calib/layer_file.h"
#include "calib/statistics_observer.h"
#include "capture/text/data_source.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct TinyModel {
  fs::path directory = TestData("tiny-qwen3/config.json").parent_path();
  ModelSpec spec = ReadModelSpec(directory);
  Checkpoint checkpoint = Checkpoint::Open(directory);

  CalibrationInput Input(at::Device device, at::ScalarType dtype) const {
    CalibrationInput input{.checkpoint = checkpoint,
                           .spec = spec,
                           .sequences = {},
                           .device = device,
                           .dtype = dtype,
                           .options = {}};
    const Tokenizer tokenizer = Tokenizer::Load(directory / "tokenizer.json");
    for (Document& document : LoadData({.files = {}, .token_budget = 12000, .max_sequence = 2048},
                                       &tokenizer, spec.vocab_size)
                                  .documents) {
      input.sequences.push_back(std::move(document.ids));
    }
    return input;
  }
};

std::vector<LayerResult> Calibrate(const CalibrationInput& input, const std::string& name) {
  JobDirectory job(TestScratch("gpu-" + name) / "out.job", {}, false);
  RunCalibration(input, job, {});
  std::vector<LayerResult> layers;
  for (size_t i = 0; i < job.finished_layers(); ++i)
    layers.push_back(ReadLayerFile(job.LayerPath(i)));
  return layers;
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(Gpu, Bf16RotationsQuantizeAsWellAsTheCpuFloat32Ones) {
  const TinyModel model;
  const auto cpu = Calibrate(model.Input(at::kCPU, at::kFloat), "cpu");
  const auto gpu = Calibrate(model.Input(at::Device(at::kCUDA, 0), at::kBFloat16), "cuda");
  for (size_t layer = 0; layer < cpu.size(); ++layer) {
    for (SideResult LayerResult::*side :
         {&LayerResult::k, &LayerResult::v, &LayerResult::k_shared, &LayerResult::v_shared}) {
      const SideResult &a = cpu[layer].*side, &b = gpu[layer].*side;
      const double expected = *std::min_element(a.clip_error.begin(), a.clip_error.end());
      const double found = *std::min_element(b.clip_error.begin(), b.clip_error.end());
      EXPECT_NEAR(found, expected, 0.01 * expected) << "layer " << layer;
      std::printf("layer %zu: error %.6f on the CPU, %.6f on the GPU (%+.2f %%)\n", layer, expected,
                  found, 100 * (found / expected - 1));
    }
  }
}

TEST_F(Gpu, TwoRunsGiveTheSameNumbers) {
  const TinyModel model;
  const CalibrationInput input = model.Input(at::Device(at::kCUDA, 0), at::kBFloat16);
  const auto first = Calibrate(input, "first"), second = Calibrate(input, "second");
  for (size_t layer = 0; layer < first.size(); ++layer) {
    EXPECT_EQ(first[layer].moments.query, second[layer].moments.query);
    EXPECT_EQ(first[layer].moments.diagonal, second[layer].moments.diagonal);
    EXPECT_EQ(first[layer].k.rotation, second[layer].k.rotation);
    EXPECT_EQ(first[layer].v.clip_threshold, second[layer].v.clip_threshold);
    EXPECT_EQ(first[layer].arms[4].kl_mean, second[layer].arms[4].kl_mean);
  }
}

// Between OnLayerBegin and OnLayerEnd, LibTorch turns every synchronizing call into an error.
class NoSyncObserver : public LayerObserver {
 public:
  explicit NoSyncObserver(StatisticsObserver& inner) : inner_(inner) {}
  void OnLayerBegin(const LayerSpec& layer) override {
    inner_.OnLayerBegin(layer);
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  }
  void OnAttention(const AttentionView& view) override {
    inner_.OnAttention(view);
    ++sequences;
  }
  void OnLayerEnd(const LayerSpec& layer) override {
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
    inner_.OnLayerEnd(layer);
  }
  int sequences = 0;

 private:
  StatisticsObserver& inner_;
};

TEST_F(Gpu, TheTokenLoopNeverWaitsForTheDevice) {
  const TinyModel model;
  const CalibrationInput input = model.Input(at::Device(at::kCUDA, 0), at::kBFloat16);
  std::vector<int64_t> lengths;
  for (const auto& sequence : input.sequences)
    lengths.push_back(static_cast<int64_t>(sequence.size()));
  const LayerLoop loop(model.checkpoint, model.spec, input.device, input.dtype);
  StatisticsObserver statistics(SplitHeldOut(lengths, 0.1), 64);
  NoSyncObserver observer(statistics);
  at::Tensor hidden = loop.Embed(input.sequences);
  loop.Run(hidden, lengths, 0, observer, [&](size_t index) {
    statistics.TakeLayer(model.spec.layers[index]);
    return true;
  });
  EXPECT_EQ(observer.sequences, static_cast<int>(4 * lengths.size()));

  // The check can fail: reading a value back is such a call.
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  EXPECT_ANY_THROW(hidden.sum().item<float>());
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
}

}  // namespace
}  // namespace oscar
