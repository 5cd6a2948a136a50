// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "capture/checkpoint/weight_storage.h"
#include "capture/model/run/layer_weights.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr std::chrono::milliseconds kMoment{100};

double PlaceOf(const Checkpoint& checkpoint, const std::string& name) {
  return PlaceOf(checkpoint, FindWeightStorage(checkpoint, name));
}

// Returns a future that waits for the turn of a digest at `place`, which must not run ahead of the
// stream.
std::future<void> At(const Checkpoint& checkpoint, double place) {
  return std::async(std::launch::async, [&, place] { checkpoint.turns()->WaitForTurn(place); });
}

TEST(WeightStream, DigestsFollowTheLayers) {
  const std::filesystem::path directory = TestScratch("weight_stream");
  WriteSyntheticModel(directory, SyntheticConfig(3, 64, 128, 2, 1, 32, 50));
  const ModelSpec spec = ReadModelSpec(directory);
  const Checkpoint checkpoint = Checkpoint::Open(directory);
  checkpoint.turns()->SetLead(0);
  const double second = PlaceOf(checkpoint, "model.layers.1.input_layernorm.weight");
  WeightStream stream(checkpoint, spec, {at::kCPU, at::kFloat}, {});
  std::future<void> at_second = At(checkpoint, second), at_end = At(checkpoint, 1);
  EXPECT_EQ(at_second.wait_for(kMoment), std::future_status::timeout);
  stream.Next();  // also loads the second layer
  at_second.get();
  stream.Next();
  stream.Next();
  EXPECT_EQ(at_end.wait_for(kMoment), std::future_status::timeout);
  checkpoint.turns()->Reach(1);
  at_end.get();
}

TEST(WeightStream, DigestsFollowTheExpertsOfALayerOneByOne) {
  OSCAR_PACK_OR_SKIP(directory, "arch/qwen3_moe");
  const ModelSpec spec = ReadModelSpec(directory);
  const Checkpoint checkpoint = Checkpoint::Open(directory);
  checkpoint.turns()->SetLead(0);
  const std::string experts = "model.layers.0.mlp.experts.";
  const double last = PlaceOf(checkpoint, experts + "7.gate_proj.weight"),
               attention = PlaceOf(checkpoint, "model.layers.0.self_attn.q_proj.weight");
  ASSERT_LT(last, attention);  // the file is ordered by name, but attention is loaded first
  WeightStream stream(checkpoint, spec, {at::kCPU, at::kFloat}, {.prefetch = false});
  stream.Next();
  std::future<void> at_last = At(checkpoint, last), at_attention = At(checkpoint, attention);
  EXPECT_EQ(at_last.wait_for(kMoment), std::future_status::timeout);
  stream.NextExperts();
  at_last.get();
  EXPECT_EQ(at_attention.wait_for(kMoment), std::future_status::timeout);
  stream.Next();
  at_attention.get();
}

}  // namespace
}  // namespace oscar
