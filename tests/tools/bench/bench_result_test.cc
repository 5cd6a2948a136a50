// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the times that oscar-bench reports: percentiles by nearest rank, lower bounds, required
// times (bars) and speedups. A wrong result has no times.
#include "tools/bench/bench_result.h"

#include <gtest/gtest.h>

#include <numeric>

namespace oscar {
namespace {

constexpr BenchBandwidth kBandwidth{.read = 4.4e6, .copy = 4.2e6};  // bytes per microsecond
constexpr int64_t kL2 = 60 << 20;

BenchResult Result(std::string kernel, std::string name, double median, double bytes = 65.1e6) {
  BenchResult result;
  result.kernel = std::move(kernel);
  result.name = std::move(name);
  result.bytes = bytes;
  result.buffers = 36;
  result.timing = BenchTiming{.eager = Summarize({2 * median}), .graph = Summarize({median})};
  result.check = BenchCheck{true, "like the reference"};
  return result;
}

TEST(BenchTimer, SummarizesByNearestRank) {
  std::vector<double> us(100);
  std::iota(us.rbegin(), us.rend(), 1.0);  // 100 .. 1
  const BenchSummary summary = Summarize(us);
  EXPECT_EQ(summary.median, 50);
  EXPECT_EQ(summary.p10, 10);
  EXPECT_EQ(summary.p90, 90);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.samples, 100);
  EXPECT_EQ(Summarize({7}).p10, 7);
  EXPECT_EQ(Summarize({1, 2, 3}).median, 2);
}

TEST(BenchTimer, TakesFewerSamplesOfLongLaunches) {
  EXPECT_EQ(SamplesFor(4999, 100), 100);
  EXPECT_EQ(SamplesFor(5001, 100), 20);
  EXPECT_EQ(SamplesFor(5001, 1000), 200);
  EXPECT_EQ(SamplesFor(5001, 7), 7);  // never more than requested
}

TEST(BenchResults, TheFloorIsTheSlowerOfMemoryAndArithmetic) {
  BenchResult result = Result("decode", "a", 20);
  EXPECT_DOUBLE_EQ(*FloorUs(result, kBandwidth), 65.1 / 4.4);
  result.flops = 8.8e12;
  result.peak_tflops = 790;
  EXPECT_NEAR(*FloorUs(result, kBandwidth), 11139, 1);
  result.timing->graph.reset();  // it ran on the host, so device bandwidth is no bound
  result.flops = 0;
  EXPECT_FALSE(FloorUs(result, kBandwidth));
}

TEST(BenchResults, SayWhetherABarIsMet) {
  BenchResult met = Result("decode", "a", 24), missed = Result("decode", "b", 24.1);
  met.bar_us = missed.bar_us = 24;
  const Json json = BenchJson({met, missed}, kBandwidth, kL2);
  EXPECT_TRUE(json["results"][0]["bar_met"]);
  EXPECT_FALSE(json["results"][1]["bar_met"]);
  EXPECT_TRUE(json["results"][0]["cold_l2"]);
  EXPECT_EQ(json["results"][0]["graph"]["median_us"], 24);
  EXPECT_EQ(json["results"][0]["eager"]["median_us"], 48);
  EXPECT_NEAR(json["results"][0]["bandwidth_share"].get<double>(), 65.1 / 24 / 4.4, 1e-12);
  const std::string text = BenchText({met, missed}, kBandwidth);
  EXPECT_NE(text.find("met"), text.npos);
  EXPECT_NE(text.find("MISSED"), text.npos);
  // Bars apply to one kind of machine, so missing one does not fail the run.
  EXPECT_EQ(BenchExitCode({met, missed}), ExitCode::kDone);
}

TEST(BenchResults, WhatFitsTheCacheIsNotCold) {
  BenchResult small = Result("flush", "a", 3, 1000);
  EXPECT_FALSE(BenchJson({small}, kBandwidth, kL2)["results"][0]["cold_l2"]);
}

TEST(BenchResults, AWrongResultHasNoTimesAndFailsTheRun) {
  BenchResult wrong = Result("decode", "a", 20);
  wrong.timing.reset();
  wrong.check = BenchCheck{false, "head 3 is off by 0.5"};
  const Json json = BenchJson({wrong}, kBandwidth, kL2)["results"][0];
  EXPECT_FALSE(json.contains("graph"));
  EXPECT_FALSE(json.contains("eager"));
  EXPECT_FALSE(json["check"]["ok"]);
  EXPECT_NE(BenchText({wrong}, kBandwidth).find("WRONG: head 3 is off by 0.5"), std::string::npos);
  BenchResult failed = Result("decode", "b", 20);
  failed.timing.reset();
  failed.check.reset();
  failed.error = "out of memory";
  failed.error_code = ExitCode::kResources;
  EXPECT_EQ(BenchExitCode({failed}), ExitCode::kResources);
  EXPECT_EQ(BenchExitCode({failed, wrong}), ExitCode::kGateFailed);
  EXPECT_EQ(BenchJson({failed}, kBandwidth, kL2)["results"][0]["error"], "out of memory");
}

TEST(BenchResults, RatiosAreToTheBestPeerOfTheSameShape) {
  const std::vector<BenchResult> results = {Result("decode", "batch 1, 100000 tokens", 20),
                                            Result("decode", "batch 1, 30000 tokens", 10),
                                            Result("decode", "batch 1, 60000 tokens", 15),
                                            Result("peer", "batch 1, 100000 tokens, torch", 99),
                                            Result("peer", "batch 1, 100000 tokens, another", 98),
                                            Result("peer", "batch 1, 30000 tokens, torch", 36)};
  const std::vector<BenchRatio> ratios = PeerRatios(results);
  ASSERT_EQ(ratios.size(), 2u);
  EXPECT_DOUBLE_EQ(ratios[0].value(), 4.9);
  EXPECT_EQ(ratios[0].bar, 4);
  EXPECT_DOUBLE_EQ(ratios[1].value(), 3.6);
  EXPECT_EQ(ratios[1].bar, 0);
  EXPECT_TRUE(BenchJson(results, kBandwidth, kL2)["ratios"][0]["bar_met"]);
  EXPECT_TRUE(IsPeerOfDecode({"peer", "batch 1, 100000 tokens, torch cuDNN BF16", {}}));
  EXPECT_FALSE(IsPeerOfDecode({"peer", "batch 1, 30000 tokens, torch cuDNN BF16", {}}));
  EXPECT_FALSE(IsPeerOfDecode({"decode", "batch 1, 100000 tokens", {}}));
}

TEST(BenchResults, TheBandwidthIsTheBestReadAndCopy) {
  const std::vector<BenchResult> results = {Result("bandwidth", "read, 4 CTAs", 100, 440e6),
                                            Result("bandwidth", "read, 8 CTAs", 110, 440e6),
                                            Result("bandwidth", "copy", 100, 420e6)};
  EXPECT_DOUBLE_EQ(BestBandwidth(results).read, 4.4e6);
  EXPECT_DOUBLE_EQ(BestBandwidth(results).copy, 4.2e6);
  std::vector<BenchResult> wrong = results;
  wrong[1].timing.reset();
  wrong[1].check = BenchCheck{false, "buffer 3: sum 0x1"};
  EXPECT_THROW(BestBandwidth(wrong), ResourceError);
}

}  // namespace
}  // namespace oscar
