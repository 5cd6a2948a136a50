// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Peak memory of the streaming path: independent of the number of layers, and as planned. Each
// measurement is a process of its own, because a peak never falls again.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "capture/model/device.h"
#include "capture/model/memory_plan.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

struct Nothing : LayerObserver {
  void OnAttention(const AttentionView&) override {}
};

struct Peak {
  double measured = 0, planned = 0;  // bytes
};

// Forks before LibTorch has started threads; the child reports through a file.
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
    std::ofstream(report) << QueryMemory(at::kCPU).peak << " " << plan.host_peak << "\n";
    for (const auto& [name, value] :
         {std::pair("weights", plan.layer_weights), std::pair("staging", plan.staging),
          std::pair("hidden", plan.hidden), std::pair("attention", plan.attention),
          std::pair("temporaries", plan.temporaries), std::pair("program", plan.program)}) {
      std::cout << "  " << name << " " << static_cast<double>(value) / (1 << 20) << " MiB\n";
    }
    std::cout.flush();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  Peak peak;
  std::ifstream(report) >> peak.measured >> peak.planned;
  std::cout << "[  memory  ] measured " << peak.measured / (1 << 20) << " MiB, planned "
            << peak.planned / (1 << 20) << " MiB\n";
  return peak;
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
  const Peak shallow = MeasurePeak(make(3), {300, 50, 150}, at::kFloat);
  const Peak deep = MeasurePeak(make(24), {300, 50, 150}, at::kFloat);
  EXPECT_NEAR(deep.measured / shallow.measured, 1, 0.05);
  EXPECT_NEAR(deep.planned / deep.measured, 1, 0.15);
  remove_all(directory);
}

}  // namespace
}  // namespace oscar
