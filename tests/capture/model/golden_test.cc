// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The layer loop against transformers 5. The reference itself agrees with float64 to 5e-6; a
// correct float32 run stays under 2e-5, so that is asked here although the contract is 2e-4 (1e-3
// for logits).
#include "tests/capture/model/golden.h"

#include <gtest/gtest.h>

#include <iostream>

#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr double kFloatTolerance = 2e-5;

void ExpectFloatGolden(const std::filesystem::path& model) {
  for (const std::string config : {"config.json", "config.legacy.json"}) {
    for (const std::string golden : {"golden.safetensors", "golden_short.safetensors"}) {
      if (!exists(model / config) || !exists(model / golden)) continue;
      const GoldenErrors errors =
          CompareWithGolden(model, {config, golden, at::kCPU, at::kFloat, {}});
      EXPECT_GE(errors.of.size(), 4u * 3 + 1);
      EXPECT_LT(errors.worst, kFloatTolerance)
          << model << " " << config << " " << golden << " " << errors.worst_name;
      std::cout << "[   f32    ] " << model.filename().string() << " " << config << " " << golden
                << ": worst " << errors.worst << " (" << errors.worst_name << "), logits "
                << errors.Logits() << "\n";
    }
  }
}

// Tolerances of the packs' README for bfloat16: first layer 1.5 %, last layer and logits 4 %.
void ExpectBFloat16Golden(const std::filesystem::path& model) {
  const GoldenErrors errors =
      CompareWithGolden(model, {"config.json", "golden.safetensors", at::kCPU, at::kBFloat16, {}});
  size_t last = 0;
  while (errors.of.contains("layer." + std::to_string(last + 1) + ".q")) ++last;
  EXPECT_LT(errors.Layer(0), 0.015) << model;
  EXPECT_LT(errors.Layer(last), 0.04) << model;
  EXPECT_LT(errors.Logits(), 0.04) << model;
  std::cout << "[   bf16   ] " << model.filename().string() << ": first layer " << errors.Layer(0)
            << ", last layer " << errors.Layer(last) << ", logits " << errors.Logits() << "\n";
}

TEST(Golden, BundledModelInFloat32) { ExpectFloatGolden(TestData("tiny-qwen3")); }
TEST(Golden, BundledModelInBFloat16) { ExpectBFloat16Golden(TestData("tiny-qwen3")); }
TEST(Golden, SlidingLayersWithBias) { ExpectFloatGolden(TestData("arch/qwen2-swa")); }
TEST(Golden, Llama3Rope) { ExpectFloatGolden(TestData("arch/llama")); }

TEST(Golden, HalfPrecisionIsBetweenBFloat16AndFloat32) {
  const auto run = [](at::ScalarType dtype) {
    return CompareWithGolden(TestData("arch/llama"),
                             {"config.json", "golden.safetensors", at::kCPU, dtype, {}})
        .Logits();
  };
  const double half = run(at::kHalf);
  EXPECT_LT(half, 0.005);
  EXPECT_LT(half, run(at::kBFloat16));
}

// The same values whether attention sees a sequence whole or in chunks, and tokens go in small
// steps.
TEST(Golden, ChunkingDoesNotChangeResults) {
  for (const char* model : {"arch/qwen2-swa", "arch/llama"}) {
    GoldenRun run;
    run.options = {/*token_chunk=*/17, /*query_chunk=*/13, /*whole_attention=*/1, true};
    const GoldenErrors errors = CompareWithGolden(TestData(model), run);
    EXPECT_LT(errors.worst, kFloatTolerance) << model << " " << errors.worst_name;
  }
}

TEST(Golden, AllPacksOfTheFamilies) {
  OSCAR_PACK_OR_SKIP(path, "arch");
  for (const char* pack :
       {"qwen2", "qwen2-swa", "qwen3", "llama", "llama-bias-tied", "mistral", "mistral-swa"}) {
    ExpectFloatGolden(path / pack);
    ExpectBFloat16Golden(path / pack);
  }
}

TEST(Golden, TrainedModels) {
  OSCAR_PACK_OR_SKIP(path, "models");
  for (const char* model : {"tiny-qwen3", "proof-qwen3"}) {
    ExpectFloatGolden(path / model);
    ExpectBFloat16Golden(path / model);
  }
}

}  // namespace
}  // namespace oscar
