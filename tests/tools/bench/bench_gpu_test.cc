// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the benchmark timer on a GPU: a CUDA graph launches every set of buffers, and a wrong
// result gets no time.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "export/cuda/device/device_array.h"
#include "tools/bench/bench_bandwidth.h"
#include "tools/bench/bench_result.h"

namespace oscar {
namespace {

constexpr int kSets = 3;

// Returns a benchmark that fills each set of buffers with `value` and adds the set's index to
// `launched`. If all bytes are written, its check reports `right`.
BenchCase FillCase(int value, std::set<int>* launched, bool right) {
  BenchCase bench;
  const auto memory = std::make_shared<DeviceArray<uint8_t>>(kSets << 20);
  memory->Fill(0);
  bench.bytes = 1 << 20;
  bench.buffers = kSets;
  bench.launch = [=](cudaStream_t stream, int set) {
    launched->insert(set);
    OSCAR_CUDA_CHECK(cudaMemsetAsync(memory->data() + (set << 20), value, 1 << 20, stream));
  };
  bench.check = [=] {
    for (const uint8_t byte : memory->ToHost())
      if (byte != value) return BenchCheck{false, "a byte was not written"};
    return BenchCheck{right, "every byte"};
  };
  return bench;
}

TEST(BenchGpu, TimesEverySetInAGraphAndAlone) {
  std::set<int> launched;
  const BenchResult result =
      RunEntry({"fill", "1 MiB", [&] { return FillCase(7, &launched, true); }}, 10);
  ASSERT_TRUE(result.timing) << result.error;
  EXPECT_EQ(launched.size(), size_t{kSets});
  EXPECT_EQ(result.timing->graph->samples, 10);
  for (const BenchSummary& summary : {result.timing->eager, *result.timing->graph}) {
    EXPECT_GT(summary.min, 0.1);
    EXPECT_LE(summary.min, summary.p10);
    EXPECT_LE(summary.p10, summary.median);
    EXPECT_LE(summary.median, summary.p90);
    EXPECT_LT(summary.median, 1000);
  }
}

TEST(BenchGpu, AWrongResultHasNoTime) {
  std::set<int> launched;
  const BenchResult result =
      RunEntry({"fill", "1 MiB", [&] { return FillCase(7, &launched, false); }}, 10);
  EXPECT_FALSE(result.timing);
  ASSERT_TRUE(result.check);
  EXPECT_EQ(BenchExitCode({result}), ExitCode::kGateFailed);
}

TEST(BenchGpu, AFailureIsThatOfItsCase) {
  const BenchResult result = RunEntry({"fill", "far too much",
                                       [] {
                                         const DeviceArray<uint8_t> memory(size_t{1} << 50);
                                         return BenchCase{};
                                       }},
                                      10);
  EXPECT_FALSE(result.timing);
  EXPECT_FALSE(result.check);
  EXPECT_EQ(result.error_code, ExitCode::kResources);
  EXPECT_NE(result.error.find("memory"), std::string::npos) << result.error;
  std::set<int> launched;  // the next benchmark still runs
  EXPECT_TRUE(RunEntry({"fill", "1 MiB", [&] { return FillCase(7, &launched, true); }}, 10).timing);
}

TEST(BenchGpu, TheReferenceBandwidthIsThatOfMemoryAndNotOfACache) {
  std::vector<BenchResult> results;
  for (const BenchEntry& entry : ReferenceBandwidth()) results.push_back(RunEntry(entry, 10));
  const BenchBandwidth bandwidth = BestBandwidth(results);
  EXPECT_GT(bandwidth.read, 0.2e6);  // 0.2 TB/s, which even small GPUs exceed
  EXPECT_LT(bandwidth.read, 10e6);
  EXPECT_GT(bandwidth.read, 0.9 * bandwidth.copy);
}

}  // namespace
}  // namespace oscar
