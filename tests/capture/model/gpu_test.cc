// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that need a GPU and are skipped without one. They compile without a CUDA toolkit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "capture/model/run/device.h"
#include "linalg/base/error.h"
#include "tests/capture/model/run_model.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

TEST(Gpu, AgreesWithGoldenValuesAndWithItself) {
  if (ParseDevice("auto").is_cpu()) GTEST_SKIP() << "no GPU";
  const at::Device gpu = ParseDevice("cuda");
  std::cout << "[   gpu    ] " << DescribeDevice(gpu) << "\n";
  for (const char* name : {"tiny-qwen3", "arch/qwen2-swa", "arch/llama"}) {
    for (const LoopOptions& options : {LoopOptions{}, LoopOptions{40, 24, 30, true}}) {
      const GoldenErrors exact = CompareWithGolden(
          TestData(name), {"config.json", "golden.safetensors", gpu, at::kFloat, options});
      EXPECT_LT(exact.worst, 2e-5) << name << " " << exact.worst_name;
      const GoldenErrors rounded = CompareWithGolden(
          TestData(name), {"config.json", "golden.safetensors", gpu, at::kBFloat16, options});
      EXPECT_LT(rounded.Layer(0), 0.015) << name;
      EXPECT_LT(rounded.worst, 0.04) << name << " " << rounded.worst_name;
      std::cout << "[   gpu    ] " << name << ": f32 worst " << exact.worst << ", bf16 worst "
                << rounded.worst << "\n";
    }
    const Model model(name);
    const Sequences sequences = SomeSequences({200, 7, 300});
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const Result first = RunAll(model, sequences, {}, gpu, dtype),
                   second = RunAll(model, sequences, {}, gpu, dtype);
      for (const auto& [tensor, value] : first.kept)
        EXPECT_TRUE(SameBytes(value, second.kept.at(tensor))) << tensor;
    }
  }
}

// Whether a golden tensor ("layer.3.q", "logits") does not depend on the choice of experts.
bool IsBeforeExperts(const ModelSpec& spec, const std::string& tensor) {
  const std::vector<const LayerSpec*> layers = AllLayers(spec);
  const auto first =
      std::ranges::find_if(layers, [](const LayerSpec* layer) { return !!layer->experts; });
  if (first == layers.end()) return true;
  constexpr std::string_view kLayer = "layer.";
  return tensor.starts_with(kLayer) &&
         std::stoi(tensor.substr(kLayer.size())) <= (*first)->layer_id;
}

TEST(Gpu, FamiliesAgreeWithGoldenValues) {
  if (ParseDevice("auto").is_cpu()) GTEST_SKIP() << "no GPU";
  size_t families = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TestData("families"))) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    GoldenRun run;
    run.device = ParseDevice("cuda");
    const GoldenErrors exact = CompareWithGolden(entry.path(), run);
    EXPECT_LT(exact.worst, 2e-5) << name << " " << exact.worst_name;
    run.dtype = at::kBFloat16;
    const GoldenErrors rounded = CompareWithGolden(entry.path(), run);
    run.device = at::kCPU;
    const GoldenErrors on_cpu = CompareWithGolden(entry.path(), run);
    // Rounding costs some of these small random models 12 % on any device, so each tensor's error
    // is compared with the CPU's. After experts, a token may have chosen different ones on each
    // device.
    const ModelSpec spec = ReadModelSpec(entry.path());
    size_t compared = 0;
    for (const auto& [tensor, error] : rounded.of) {
      if (!IsBeforeExperts(spec, tensor)) continue;
      EXPECT_LT(error, 1.5 * on_cpu.of.at(tensor) + 0.01) << name << " " << tensor;
      ++compared;
    }
    EXPECT_GT(compared, 0u) << name;
    std::cout << "[   gpu    ] " << name << ": f32 worst " << exact.worst << ", bf16 worst "
              << rounded.worst << "\n";
    ++families;
  }
  EXPECT_GT(families, 20u);
}

TEST(Gpu, EveryWayToReadGivesTheSameBytes) {
  if (ParseDevice("auto").is_cpu()) GTEST_SKIP() << "no GPU";
  const Model model("tiny-qwen3");
  const Sequences sequences = SomeSequences({200, 7, 300});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Result expected = RunAll(model, sequences, {}, ParseDevice("cuda"), dtype);
    for (const ReadMode read : {ReadMode::kAuto, ReadMode::kDirect, ReadMode::kCached}) {
      for (const bool prefetch : {true, false}) {
        LoopOptions options;
        options.read = read;
        options.prefetch = prefetch;
        const Result found = RunAll(model, sequences, options, ParseDevice("cuda"), dtype);
        EXPECT_TRUE(SameBytes(expected.hidden.cpu(), found.hidden.cpu()));
      }
    }
  }
}

TEST(Gpu, AFileCutShortAfterItWasOpenedIsAnInputError) {
  if (ParseDevice("auto").is_cpu()) GTEST_SKIP() << "no GPU";
  const auto directory = TestScratch("cut-short");
  for (const char* file : {"config.json", "model.safetensors"})
    copy_file(TestData(std::string("tiny-qwen3/") + file), directory / file);
  const ModelSpec spec = ReadModelSpec(directory);
  const Checkpoint checkpoint = Checkpoint::Open(directory);
  const LayerLoop loop(checkpoint, spec, ParseDevice("cuda"), at::kBFloat16);
  const Sequences sequences = SomeSequences({200});
  at::Tensor hidden = loop.Embed(sequences);
  resize_file(directory / "model.safetensors", file_size(directory / "model.safetensors") / 2);
  SilentObserver nothing;
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     loop.Run(hidden, Lengths(sequences), 0, nothing, [](size_t) { return true; });
                   }),
                   "cut short"));
}

}  // namespace
}  // namespace oscar
