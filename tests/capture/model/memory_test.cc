// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the peak memory of the streaming path is independent of the number of layers and
// agrees with the plan. Each measurement has its own process, because a peak never falls.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "capture/model/run/device.h"
#include "capture/model/run/memory_plan.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

struct Nothing : LayerObserver {
  void OnAttention(const AttentionView&) override {}
};

struct Peak {
  double measured = 0, planned = 0, layer = 0;  // bytes; `layer`: one layer's weights
};

// Must fork before LibTorch starts threads. The child writes its result to a file.
Peak MeasurePeak(const std::filesystem::path& model, const std::vector<int64_t>& lengths,
                 at::ScalarType dtype) {
  const std::filesystem::path report = model / "peak";
  const pid_t child = fork();
  if (child == 0) {
    const ModelSpec spec = ReadModelSpec(model);
    const Checkpoint checkpoint = Checkpoint::Open(model);
    std::vector<std::vector<int32_t>> ids;
    int64_t tokens = 0, longest = 0;
    for (const int64_t length : lengths) {
      ids.emplace_back(static_cast<size_t>(length), 5);
      tokens += length;
      longest = std::max(longest, length);
    }
    const MemoryPlan plan = PlanMemory(spec, checkpoint, tokens, longest, dtype, at::kCPU);
    ResetPeakMemory(at::kCPU);
    const LayerLoop loop(checkpoint, spec, at::kCPU, dtype);
    at::Tensor hidden = loop.Embed(ids);
    Nothing nothing;
    loop.Run(hidden, lengths, 0, nothing, [](size_t) { return true; });
    std::ofstream(report) << QueryMemory(at::kCPU).peak << " " << plan.host_peak << " "
                          << plan.layer_weights / 2 << "\n";
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  Peak peak;
  std::ifstream(report) >> peak.measured >> peak.planned >> peak.layer;
  std::cout << "[  memory  ] measured " << peak.measured / (1 << 20) << " MiB, planned "
            << peak.planned / (1 << 20) << " MiB\n";
  return peak;
}

// For LibTorch's allocations at first use, the plan counts the largest size observed.
void ExpectAsPlanned(const Peak& peak) {
  constexpr double kLibTorchDiffers = 20 << 20;
  EXPECT_NEAR(peak.planned, peak.measured, 0.15 * peak.measured + kLibTorchDiffers);
}

TEST(Memory, DoesNotGrowWithLayersAndIsAsPlanned) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory is in the way";
#endif
  const auto directory = TestScratch("memory");
  const auto make = [&](int64_t layers) {
    const auto model = directory / std::to_string(layers);
    create_directories(model);
    WriteSyntheticModel(model, SyntheticConfig(layers, 512, 1536, 8, 4, 64, 500));
    return model;
  };
  // The difference of two depths varies between -2 and +10 MiB from run to run. Causes are the
  // slack of the heap, and pages at tensor edges that MappedFile keeps, some 30 KiB per layer.
  const Peak shallow = MeasurePeak(make(12), {150, 20, 80}, at::kFloat);
  const Peak deep = MeasurePeak(make(36), {150, 20, 80}, at::kFloat);
  // Keeping the additional 24 layers would cost 24 layers' weights, and keeping their mapped bf16
  // pages 12.
  EXPECT_LT(deep.measured - shallow.measured, 2 * shallow.layer);
  for (const Peak& peak : {shallow, deep}) ExpectAsPlanned(peak);
  remove_all(directory);
}

TEST(Memory, OfQuantizedWeightsIsAsPlanned) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory is in the way";
#endif
  const auto plain = TestScratch("plain"), quantized = TestScratch("quantized");
  Json config = SyntheticConfig(12, 512, 1536, 8, 4, 64, 500);
  WriteSyntheticModel(plain, config);
  CopyWeights(plain, quantized, [](TensorMap& tensors) {
    TensorMap scales;
    for (auto& [name, tensor] : tensors) {
      if (!name.ends_with("_proj.weight")) continue;
      tensor.dtype = DType::kF8E4M3;
      tensor.data.assign(tensor.data.size() / 2, std::byte{0x28});
      scales[name + "_scale_inv"] = {DType::kF32, {}, std::vector<std::byte>(4)};
    }
    tensors.merge(scales);
  });
  config["quantization_config"] = {{"quant_method", "fp8"}};
  WriteFileAtomically(quantized / "config.json", config.dump());
  const Peak as_stored = MeasurePeak(plain, {150, 20, 80}, at::kFloat);
  const Peak peak = MeasurePeak(quantized, {150, 20, 80}, at::kFloat);
  ExpectAsPlanned(peak);
  EXPECT_EQ(peak.layer, as_stored.layer);  // dense, in the compute dtype
  remove_all(plain);
  remove_all(quantized);
}

}  // namespace
}  // namespace oscar
