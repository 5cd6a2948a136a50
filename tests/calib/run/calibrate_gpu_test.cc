// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests calibration on a GPU: it agrees with the CPU, is deterministic, and never waits for the
// device in the token loop. Run with `ctest --preset cuda`; without a GPU, every test is skipped.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "calib/fit/fit.h"
#include "calib/job/layer_file.h"
#include "calib/observe/statistics_observer.h"
#include "calib/run/calibrate.h"
#include "calib/run/plan.h"
#include "calib/search/clip_search.h"
#include "capture/model/run/device.h"
#include "capture/text/data/data_source.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the directory of the bundled model, or the one named by OSCAR_TEST_MODEL.
fs::path ModelDirectory() {
  const char* directory = std::getenv("OSCAR_TEST_MODEL");
  return directory != nullptr ? fs::path(directory)
                              : TestData("tiny-qwen3/config.json").parent_path();
}

struct TestModel {
  fs::path directory = ModelDirectory();
  ModelSpec spec = ReadModelSpec(directory);
  Checkpoint checkpoint = Checkpoint::Open(directory);

  CalibrationInput Input(at::Device device, at::ScalarType dtype) const {
    std::vector<std::vector<int32_t>> sequences;
    const Tokenizer tokenizer = Tokenizer::Load(directory / "tokenizer.json");
    for (Document& document : LoadData({.files = {}, .token_budget = 30000, .max_sequence = 2048},
                                       &tokenizer, spec.vocab_size)
                                  .documents) {
      sequences.push_back(std::move(document.ids));
    }
    return {.source = std::make_shared<ModelSource>(checkpoint, spec, std::move(sequences), device,
                                                    dtype, CalibrationLoopOptions()),
            .device = device,
            .dtype = dtype,
            .options = {}};
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
    if (NumGpus() == 0) GTEST_SKIP() << "no GPU";
  }
};

// Compares the CPU's and the GPU's rotations on the same rows, the CPU's float32 keys and values of
// all tokens. Rounding of a covariance rotates eigenvectors whose eigenvalues are close. That
// changes the error of one head by some per cent, so only errors summed over heads and layers are
// compared.
TEST_F(Gpu, Bf16RotationsQuantizeAsWellAsTheCpuFloat32Ones) {
  const TestModel model;
  const CalibrationInput cpu_input = model.Input(at::kCPU, at::kFloat);
  const auto cpu = Calibrate(cpu_input, "cpu");
  const auto gpu = Calibrate(model.Input(at::Device(at::kCUDA, 0), at::kBFloat16), "cuda");
  StatisticsObserver observer(SplitHeldOut(cpu_input.source->sequence_lengths(), 0), 1);
  double expected[2] = {}, found[2] = {};
  cpu_input.source->Run(0, observer, [&](size_t layer) {
    const ObservedLayer observed = observer.TakeLayer(model.spec.layers[layer]);
    for (int side = 0; side < 2; ++side) {
      std::vector<Matrix> importance;
      for (int64_t head = 0; head < observed.fit.num_kv_heads; ++head) {
        importance.push_back(
            side == 0 ? observed.fit.QueryCovariance(head)
                      : observed.fit.ValueCovariance(head, ValueTarget::kAttentionOutput));
      }
      const at::Tensor rows = at::cat(side == 0 ? observed.keys : observed.values);
      const auto error = [&](const std::vector<LayerResult>& run) {
        SideResult result = side == 0 ? run[layer].k : run[layer].v;
        SearchClip(rows, importance, {side == 0 ? 0.96 : 0.92}, result.dim, result);
        return result.clip_error[0];
      };
      const double on_cpu = error(cpu), on_gpu = error(gpu);
      expected[side] += on_cpu;
      found[side] += on_gpu;
      std::printf(
          "layer %zu %s: error %.6f with the CPU's rotations, %.6f with the GPU's (%+.2f %%)\n",
          layer, side == 0 ? "keys" : "values", on_cpu, on_gpu, 100 * (on_gpu / on_cpu - 1));
    }
    return true;
  });
  for (int side = 0; side < 2; ++side) {
    std::printf("%s: %+.2f %%\n", side == 0 ? "keys" : "values",
                100 * (found[side] / expected[side] - 1));
    EXPECT_NEAR(found[side], expected[side], 0.01 * expected[side]);
  }
}

TEST_F(Gpu, TwoRunsGiveTheSameNumbers) {
  const TestModel model;
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

// Fitting during the next layer or after it, and committing at any layer, give the same bits.
TEST_F(Gpu, HowALayerIsScheduledDoesNotChangeIt) {
  const TestModel model;
  CalibrationInput input = model.Input(at::Device(at::kCUDA, 0), at::kBFloat16);
  const auto beside = Calibrate(input, "beside");
  input.run.fits_beside = 0;
  const auto after = Calibrate(input, "after");
  input.run = {.fits_beside = 1, .commit_seconds = 0};
  const fs::path path = TestScratch("gpu-parts") / "out.job";
  CalibrationHooks hooks;
  hooks.stop_requested = [] { return true; };
  for (size_t layer = 0; layer + 1 < beside.size(); ++layer) {
    JobDirectory job(path, {}, false);
    EXPECT_THROW(RunCalibration(input, job, hooks), Interrupted);
    EXPECT_EQ(job.finished_layers(), layer + 1);
  }
  JobDirectory job(path, {}, false);
  RunCalibration(input, job, {});
  for (size_t layer = 0; layer < beside.size(); ++layer) {
    const LayerResult resumed = ReadLayerFile(job.LayerPath(layer));
    for (const LayerResult* other : {&after[layer], &resumed}) {
      EXPECT_EQ(beside[layer].moments.query, other->moments.query);
      EXPECT_EQ(beside[layer].k.rotation, other->k.rotation);
      EXPECT_EQ(beside[layer].v.clip_error, other->v.clip_error);
      EXPECT_EQ(beside[layer].v.clip_threshold, other->v.clip_threshold);
      EXPECT_EQ(beside[layer].arms[4].kl_mean, other->arms[4].kl_mean);
    }
  }
}

// The GPU uses topk and the CPU kthvalue. With the identity rotation, both see the same values, so
// their thresholds must be equal.
TEST_F(Gpu, ThresholdsAreTheSameOrderStatistics) {
  at::Tensor rows = at::randn({3000, 4, 64}, at::kBFloat16);
  rows.narrow(0, 0, 500).zero_();
  rows.narrow(0, 500, 500).fill_(-1.5);
  rows[999][1][5] = 3e38f;
  const std::vector<at::Tensor> on_cpu = {rows.narrow(0, 0, 1), rows.narrow(0, 1, 2999)};
  const std::vector<at::Tensor> on_gpu = {on_cpu[0].cuda(), on_cpu[1].cuda()};
  for (const double ratio : {0.01, 0.3, 0.5, 0.96, 1.0}) {
    SideResult expected = IdentitySide(64), found = IdentitySide(64);
    expected.clip_ratio = found.clip_ratio = ratio;
    StaticThresholds(on_cpu, expected);
    StaticThresholds(on_gpu, found);
    EXPECT_EQ(expected.clip_threshold, found.clip_threshold) << ratio;
  }
}

// A GPU evaluates several clip ratios at a time, a CPU one.
TEST_F(Gpu, ClipCurvesAgreeWithTheCpu) {
  const at::Tensor rows = at::randn({700, 4, 64}, at::kFloat);
  std::vector<Matrix> importance;
  for (int head = 0; head < 4; ++head) {
    const Matrix a = Matrix::Random(64, 64);
    importance.push_back(a * a.transpose());
  }
  const std::vector<double> candidates = {0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0};
  SideResult expected = HadamardSide(64), found = HadamardSide(64);
  SearchClip(rows, importance, candidates, 32, expected);
  SearchClip(rows.cuda(), importance, candidates, 32, found);
  for (size_t i = 0; i < candidates.size(); ++i)
    EXPECT_NEAR(found.clip_error[i], expected.clip_error[i], 1e-5 * expected.clip_error[i]);
}

struct MemoryCase {
  std::string what;
  LoopOptions loop;
  RunOptions run;
};

TEST_F(Gpu, MemoryStaysWithinThePlan) {
  const TestModel model;
  std::vector<MemoryCase> cases(4);
  for (MemoryCase& test : cases) test.loop = CalibrationLoopOptions();
  cases[0].what = "default";
  cases[1].what = "one after the other";
  cases[1].run.fits_beside = 0;
  cases[2] = cases[1];
  cases[2].what = "small chunks";
  cases[2].loop.token_chunk = 256;
  cases[2].loop.query_chunk = 64;
  cases[3] = cases[2];
  cases[3].what = "one layer of weights";
  cases[3].loop.prefetch = false;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
    for (const MemoryCase& test : cases) {
      CalibrationInput input = model.Input(at::Device(at::kCUDA, 0), dtype);
      input.source = std::make_shared<ModelSource>(
          model.checkpoint, model.spec, input.model()->sequences(), input.device, dtype, test.loop);
      input.run = test.run;
      const uint64_t plan = PlanDeviceMemory(input);
      ResetPeakMemory(input.device);
      const uint64_t before = QueryMemory(input.device).peak;  // cuBLAS workspaces of other streams
      Calibrate(input, "memory");
      const uint64_t peak = QueryMemory(input.device).peak - before;
      std::printf("%s, %s: planned %.1f MB, held %.1f MB\n", test.what.c_str(),
                  std::string(ComputeDTypeName(dtype)).c_str(), static_cast<double>(plan) / 1e6,
                  static_cast<double>(peak) / 1e6);
      EXPECT_LE(peak, plan) << test.what;
      // Concurrent fits seldom reach their peaks at the same time.
      EXPECT_GE(peak, plan / (test.run.fits_beside > 0 ? 6 : 3))
          << test.what << ": a plan that says nothing";
    }
  }
}

// Counts the synchronizing calls of this thread. LibTorch warns about each of them, and warning
// handlers are per thread. The thread that prefetches weights may wait for its own copies.
class SyncCounter : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override { ++count; }
  int count = 0;
};

class NoSyncObserver : public LayerObserver {
 public:
  explicit NoSyncObserver(StatisticsObserver& inner) : inner_(inner) {}
  void OnLayerBegin(const LayerSpec& layer) override {
    inner_.OnLayerBegin(layer);
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_WARN);
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
  const TestModel model;
  const CalibrationInput input = model.Input(at::Device(at::kCUDA, 0), at::kBFloat16);
  const std::vector<int64_t>& lengths = input.source->sequence_lengths();
  const LayerLoop loop(model.checkpoint, model.spec, input.device, input.dtype);
  StatisticsObserver statistics(SplitHeldOut(lengths, 0.1), 64);
  NoSyncObserver observer(statistics);
  SyncCounter counter;
  const c10::WarningUtils::WarningHandlerGuard guard(&counter);
  at::Tensor hidden = loop.Embed(input.model()->sequences());
  loop.Run(hidden, lengths, 0, observer, [&](size_t index) {
    statistics.TakeLayer(model.spec.layers[index]);
    return true;
  });
  EXPECT_EQ(observer.sequences, static_cast<int>(model.spec.layers.size() * lengths.size()));
  EXPECT_EQ(counter.count, 0);

  // Checks the counter itself: reading a value back is a synchronizing call.
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_WARN);
  (void)hidden.sum().item<float>();
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
  EXPECT_GT(counter.count, 0);
}

}  // namespace
}  // namespace oscar
