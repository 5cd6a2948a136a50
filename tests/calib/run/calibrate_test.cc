// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the whole calibration of the bundled model: compares it with the oracle, resumes it, and
// checks which inputs are refused. dump_calibration_test.cc calibrates from a dump instead.
#include "calib/run/calibrate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "calib/job/layer_file.h"
#include "calib/run/plan.h"
#include "linalg/base/error.h"
#include "tests/calib/observe/golden_layer.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<int32_t> Ids(const fs::path& golden) {
  const SafetensorsFile file = SafetensorsFile::Open(golden);
  const TensorView view = file.tensor("input_ids");
  std::vector<int32_t> ids(view.data.size() / 4);
  std::memcpy(ids.data(), view.data.data(), view.data.size());
  return ids;
}

struct TinyModel {
  TinyModel() : TinyModel(TestData("tiny-qwen3/config.json").parent_path()) {}
  explicit TinyModel(const fs::path& path) : directory(path) {}

  fs::path directory;
  ModelSpec spec = ReadModelSpec(directory);
  Checkpoint checkpoint = Checkpoint::Open(directory);

  CalibrationInput Input(std::vector<std::vector<int32_t>> sequences) const {
    CalibrationInput input{
        .source = std::make_shared<ModelSource>(checkpoint, spec, std::move(sequences), at::kCPU,
                                                at::kFloat, CalibrationLoopOptions()),
        .device = at::kCPU,
        .dtype = at::kFloat,
        .options = {}};
    input.options.min_tokens = 1;
    return input;
  }
};

std::vector<std::vector<int32_t>> SomeSequences() {
  const std::vector<int32_t> ids = Ids(TestData("tiny-qwen3/golden.safetensors"));
  std::vector<std::vector<int32_t>> sequences;
  for (size_t i = 0; i < 20; ++i) {
    sequences.emplace_back(ids.begin() + static_cast<int64_t>(3 * i),
                           ids.begin() + static_cast<int64_t>(3 * i + 40 + 5 * i));
  }
  return sequences;
}

// Compares float32 statistics on the CPU with a float64 oracle that was computed from transformers'
// q, k and v for the same token ids.
void ExpectStatistics(const std::vector<int32_t>& ids, const fs::path& oracle_path) {
  const TinyModel model;
  const fs::path job_path = TestScratch("calibrate") / "oracle.job";
  JobDirectory job(job_path, {}, false);
  RunCalibration(model.Input({ids}), job, {});
  const SafetensorsFile oracle = SafetensorsFile::Open(oracle_path);
  for (size_t i = 0; i < 4; ++i) {
    const LayerMoments m = ReadLayerFile(job.LayerPath(i)).moments;
    const auto expect = [&](const char* name, const auto& matrix_of_head) {
      const at::Tensor expected = ReadFloat64(oracle, "layer." + std::to_string(i) + "." + name);
      for (int64_t head = 0; head < 2; ++head) {
        const std::vector<double> values = Values(expected[head]);
        const Eigen::Map<const Matrix> e(values.data(), 64, 64);
        EXPECT_LT((matrix_of_head(head) - e).norm() / e.norm(), 1e-4)
            << name << " of layer " << i << ", head " << head;
      }
    };
    expect("c_q", [&](int64_t head) { return m.QueryCovariance(head); });
    expect("c_v_paper",
           [&](int64_t head) { return m.ValueCovariance(head, ValueTarget::kAttentionOutput); });
    expect("c_v_upstream",
           [&](int64_t head) { return m.ValueCovariance(head, ValueTarget::kDiagonal); });
    expect("ktk", [&](int64_t head) { return m.KeySecondMoment(head); });
    expect("vtv", [&](int64_t head) { return m.ValueSecondMoment(head); });
  }
}

TEST(Calibrate, StatisticsEqualTheOracle) {
  OSCAR_PACK_OR_SKIP(oracle, "oracle/tiny-qwen3.safetensors");
  ExpectStatistics(Ids(TestData("tiny-qwen3/golden.safetensors")), oracle);
}

// Replaces all key and output projections by random 4-bit GPTQ codes with zero point 8 and scale
// 2^-6, or by the same values in float32.
void StoreCodes(TensorMap& tensors, bool quantized) {
  std::minstd_rand random(3);
  TensorMap added;
  for (const auto& [name, tensor] : tensors) {
    if (!name.ends_with("k_proj.weight") && !name.ends_with("o_proj.weight")) continue;
    const auto rows = static_cast<size_t>(tensor.shape[0]),
               columns = static_cast<size_t>(tensor.shape[1]);
    std::vector<uint32_t> words(columns / 8 * rows), zeros(rows / 8, 0x88888888U);
    std::vector<float> values(rows * columns);
    for (size_t n = 0; n < rows; ++n) {
      for (size_t k = 0; k < columns; ++k) {
        const uint32_t code = random() >> 8 & 15;
        words[k / 8 * rows + n] |= code << (4 * (k % 8));
        values[n * columns + k] = (static_cast<float>(code) - 8) / 64;
      }
    }
    const auto add = [&](const std::string& to, DType dtype, std::vector<int64_t> shape,
                         const auto& data) {
      const auto bytes = std::as_bytes(std::span(data));
      added[to] = {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
    };
    const std::string module = name.substr(0, name.size() - std::strlen("weight"));
    if (!quantized) {
      add(name, DType::kF32, tensor.shape, values);
      continue;
    }
    add(module + "qweight", DType::kI32, {tensor.shape[1] / 8, tensor.shape[0]}, words);
    add(module + "qzeros", DType::kI32, {1, tensor.shape[0] / 8}, zeros);
    add(module + "scales", DType::kF16, {1, tensor.shape[0]}, std::vector<uint16_t>(rows, 0x2400));
  }
  std::erase_if(tensors, [](const auto& entry) {
    return entry.first.ends_with("k_proj.weight") || entry.first.ends_with("o_proj.weight");
  });
  tensors.merge(added);
}

TEST(Calibrate, QuantizedWeightsAreTheirValues) {
  const fs::path tiny = TestData("tiny-qwen3/config.json").parent_path();
  std::vector<std::string> layers;  // contents of layer files
  for (const bool quantized : {false, true}) {
    const fs::path directory = TestScratch(quantized ? "quantized" : "values");
    CopyWeights(tiny, directory, [&](TensorMap& tensors) { StoreCodes(tensors, quantized); });
    Json config = ReadJsonFile((tiny / "config.json").string());
    if (quantized) {
      config["quantization_config"] = {{"quant_method", "gptq"},
                                       {"bits", 4},
                                       {"group_size", -1},
                                       {"checkpoint_format", "gptq_v2"}};
    }
    WriteFileAtomically(directory / "config.json", config.dump());
    const TinyModel model(directory);
    CheckTensors(model.spec, model.checkpoint);
    std::vector<std::vector<int32_t>> sequences = SomeSequences();
    sequences.resize(4);
    JobDirectory job(directory / "run.job", {}, false);
    RunCalibration(model.Input(sequences), job, {});
    layers.push_back(ReadText(job.LayerPath(0)) + ReadText(job.LayerPath(3)));
  }
  EXPECT_GT(layers[0].size(), 1000u);
  EXPECT_TRUE(layers[0] == layers[1]);
}

TEST(Calibrate, AResumedRunGivesTheSameBytes) {
  const TinyModel model;
  const fs::path scratch = TestScratch("calibrate");
  const CalibrationInput input = model.Input(SomeSequences());
  JobDirectory whole(scratch / "whole.job", {}, false);
  RunCalibration(input, whole, {});

  for (int round = 0; round < 4; ++round) {  // each round adds one layer
    JobDirectory parts(scratch / "parts.job", {}, false);
    CalibrationHooks hooks;
    hooks.stop_requested = [] { return true; };
    if (round < 3) {
      EXPECT_THROW(RunCalibration(input, parts, hooks), Interrupted);
    } else {
      RunCalibration(input, parts, hooks);  // a stop after the last layer has no effect
    }
    EXPECT_EQ(parts.finished_layers(), static_cast<size_t>(round + 1));
  }
  for (size_t i = 0; i < 4; ++i) {
    const std::string name = whole.LayerPath(i).filename();
    EXPECT_EQ(ReadText(scratch / "whole.job" / name), ReadText(scratch / "parts.job" / name))
        << name;
  }
}

TEST(Calibrate, LayerResultsKeepTheirPromises) {
  const TinyModel model;
  CalibrationInput input = model.Input(SomeSequences());
  input.options.sink_tokens = 4;
  input.options.recent_tokens = 8;
  JobDirectory job(TestScratch("calibrate") / "promises.job", {}, false);
  RunCalibration(input, job, {});
  for (size_t i = 0; i < 4; ++i) {
    const LayerResult layer = ReadLayerFile(job.LayerPath(i));
    for (const SideResult* side : {&layer.k, &layer.v, &layer.k_shared, &layer.v_shared}) {
      EXPECT_LE(side->orthogonality, 1e-12);
      EXPECT_NEAR(side->importance_max_over_mean, 1, 1e-9);
      EXPECT_EQ(side->clip_error.size(), layer.clip_candidates.size());
      EXPECT_EQ(side->clip_threshold.size(), 2u);
    }
    ASSERT_EQ(layer.arms.size(), 5u);
    EXPECT_GT(layer.arms[0].rows_beyond, 0);
    EXPECT_GT(layer.arms[0].kl_mean, 0);
    EXPECT_LT(layer.arms[0].kl_mean, layer.arms[0].kl_mean_no_windows);
  }
}

TEST(Calibrate, TooFewTokensAreRefusedBeforeAnyWeightIsRead) {
  const TinyModel model;
  std::vector<std::vector<int32_t>> sequences = SomeSequences();
  sequences.resize(3);
  CalibrationInput input = model.Input(std::move(sequences));
  input.options.min_tokens = -1;
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { CheckCalibration(input); }),
                   "at least 1280 (20 * head_dim 64)"));
}

TEST(Calibrate, OptionsThatDoNotFitTheModelAreRefused) {
  const TinyModel model;
  CalibrationInput input = model.Input(SomeSequences());
  input.options.clip.quant_group_size = 48;
  EXPECT_THROW(CheckCalibration(input), UsageError);
  input.options.clip.quant_group_size = 32;
  EXPECT_NO_THROW(CheckCalibration(input));
  input.options.clip.candidates = {0.9, 0.8};
  EXPECT_THROW(CheckCalibration(input), UsageError);
  // With heads of 64, a one-byte scale and a one-byte zero take a quarter of a bit per value. In
  // groups of 32, they take half a bit.
  input.options.clip.candidates = {0.9};
  input.options.automatic = {.enabled = true, .bits = 2.4};
  EXPECT_THROW(CheckCalibration(input), UsageError);
  input.options.clip.quant_group_size = 0;
  EXPECT_NO_THROW(CheckCalibration(input));
  input.options.automatic.bits = 2.24;
  EXPECT_THROW(CheckCalibration(input), UsageError);
  input.options.automatic.bits = 2;
  EXPECT_NO_THROW(CheckCalibration(input));
}

// Only plans memory for a GPU; nothing runs on one.
TEST(Calibrate, LessGpuMemoryMeansSlowerWaysAndThenAnError) {
  const TinyModel model;
  const auto make = [&](const LoopOptions& loop, const RunOptions& run) {
    CalibrationInput input = model.Input(SomeSequences());
    input.device = at::Device(at::kCUDA, 0);
    input.dtype = at::kBFloat16;
    input.source = std::make_shared<ModelSource>(model.checkpoint, model.spec, SomeSequences(),
                                                 input.device, input.dtype, loop);
    input.run = run;
    return input;
  };
  const auto chosen = [&](uint64_t limit) {
    const CalibrationInput input = FitIntoMemory(limit, make);
    EXPECT_LE(PlanDeviceMemory(input), limit);
    return std::pair(input.model()->loop().options(), input.run);
  };
  const auto fastest = chosen(uint64_t{1} << 40);
  EXPECT_EQ(fastest.second.fits_beside, RunOptions().fits_beside);
  EXPECT_EQ(fastest.first.token_chunk, LoopOptions().token_chunk);
  const uint64_t all = PlanDeviceMemory(make(fastest.first, fastest.second));
  EXPECT_EQ(chosen(all).second.fits_beside, fastest.second.fits_beside);
  // At most as many layers are fitted at the same time as the model has.
  EXPECT_EQ(chosen(all - 1).second.fits_beside,
            std::min<int>(fastest.second.fits_beside, std::ssize(model.spec.layers)) - 1);

  // Lowers the limit step by step until the plan is refused.
  uint64_t limit = all;
  std::string refusal;
  int ways = 0;
  bool one_layer_at_a_time = false;
  while (refusal.empty()) {
    try {
      const auto [loop, run] = chosen(limit);
      one_layer_at_a_time = !loop.prefetch;
      const uint64_t needs = PlanDeviceMemory(make(loop, run));
      ASSERT_LE(needs, limit);
      limit = needs - 1;
      ++ways;
    } catch (const ResourceError& error) {
      refusal = error.what();
    }
  }
  EXPECT_GE(ways, 3);
  EXPECT_TRUE(one_layer_at_a_time);
  EXPECT_TRUE(Says(refusal, "GB may be used"));
}

TEST(Calibrate, SearchingClipsNeedsHeldOutTokens) {
  const TinyModel model;
  CalibrationInput input = model.Input(SomeSequences());
  input.options.held_out = 0;
  EXPECT_THROW(CheckCalibration(input), InputError);
  input.options.clip.mode = ClipMode::kFixed;
  EXPECT_NO_THROW(CheckCalibration(input));
}

}  // namespace
}  // namespace oscar
