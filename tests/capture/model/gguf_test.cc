// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares values of every GGUF type with PyPI's gguf. Compares every architecture, as make_gguf.py
// lays it out, with transformers' golden values (in F32) and, to the last bit, with a directory
// that has the same values (quantized).
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>

#include "capture/checkpoint/gguf/gguf_model.h"
#include "capture/checkpoint/model_config.h"
#include "capture/model/run/dequantize_gguf.h"
#include "linalg/base/error.h"
#include "tests/capture/model/golden.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// Returns false if Python or a package is missing.
bool RunPython(const std::string& script, ProgramStrings arguments) {
  arguments.insert(
      arguments.begin(),
      {"-u", "LD_PRELOAD", std::string("PYTHONPATH=") + OSCAR_CONSUMERS, OSCAR_PYTHON, script});
  const ProgramExit exit = RunProgram("/usr/bin/env", arguments);
  constexpr int kNoPackage = 77, kNoPython = 127;
  if (exit.code == kNoPackage || exit.code == kNoPython) return false;
  EXPECT_EQ(exit.code, 0) << exit.err;
  return true;
}

// Compares the values of all types in the file. Returns the number of types.
size_t CheckBlocks(const fs::path& path) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  size_t types = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const GgmlType* const type = FindGgmlType(id);
    if (type == nullptr || !file.tensors().contains(std::string(type->name) + ".bytes")) continue;
    ++types;
    const TensorView bytes = file.tensor(std::string(type->name) + ".bytes");
    const TensorView values = file.tensor(std::string(type->name) + ".values");
    const at::Tensor raw = at::empty(bytes.shape, at::kByte);
    std::memcpy(raw.data_ptr(), bytes.data.data(), bytes.data.size());
    const at::Tensor mine = GgmlValues(raw, *type);
    EXPECT_EQ(mine.sizes().vec(), values.shape) << type->name;
    size_t wrong = 0;
    for (int64_t i = 0; i < mine.numel(); ++i) {
      float a = 0, b = 0;
      std::memcpy(&a, static_cast<const float*>(mine.const_data_ptr()) + i, sizeof a);
      std::memcpy(&b, values.data.data() + static_cast<size_t>(i) * sizeof b, sizeof b);
      wrong += (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0 ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << type->name;
  }
  return types;
}

TEST(GgufValues, AreThoseOfTheGoldenFile) {
  EXPECT_EQ(CheckBlocks(TestData("gguf/blocks.safetensors")), 16U);
}

TEST(GgufValues, AreThoseOfThePackage) {
  const fs::path out = TestScratch("gguf-blocks") / "blocks.safetensors";
  if (!RunPython(TestData("gguf/make.py").string(), {out.string(), "10000"}))
    GTEST_SKIP() << "no Python with gguf: tools/setup.sh --tests";
  EXPECT_EQ(CheckBlocks(out), 16U);
}

// `patch`: what the model has but a GGUF cannot express. llama.cpp hard-codes it or lacks it.
struct Row {
  const char* family;
  const char* patch = "{}";
};
const Row kRows[] = {
    {"llama-linear"},
    {"llama-yarn", R"({"rope_scaling": {"truncate": false}})"},
    {"mistral", R"({"model_type": "mistral", "architectures": null, "sliding_window": 10,
                    "attention_bias": null, "mlp_bias": null})"},
    {"mixtral"},
    {"ministral3"},
    {"granite"},
    {"smollm3",
     R"({"no_rope_layers": [1, 0, 1], "use_sliding_window": true, "sliding_window": 10})"},
    {"qwen2", R"({"use_sliding_window": true, "sliding_window": 10, "max_window_layers": 1})"},
    {"qwen3"},
    {"qwen2_moe"},
    {"qwen3_moe"},
    {"qwen3_next"},
    {"qwen3_5_text"},
    {"qwen3_5_moe_text"},
    {"gemma2", R"({"query_pre_attn_scalar": 24})"},
    {"gemma3_text", R"({"query_pre_attn_scalar": 24})"},
    {"gemma4_text"},
    {"gemma4_text-ple"},
    {"phi3"},
    {"glm4"},
    {"glm4_moe"},
    {"gpt_oss"},
    {"deepseek_v2"},
    {"deepseek_v3", R"({"rope_scaling": {"mscale": 0.7}})"},
};

Json PatchedConfig(const fs::path& gguf, const Row& row) {
  Json config = ReadModelConfig(gguf);
  config.merge_patch(Json::parse(row.patch));
  return config;
}

TEST(GgufModels, AgreeWithTransformers) {
  const fs::path scratch = TestScratch("gguf-golden");
  for (const Row& row : kRows) {
    const fs::path family = TestData(std::string("families/") + row.family);
    const fs::path gguf = scratch / (std::string(row.family) + ".gguf");
    if (!RunPython(OSCAR_MAKE_GGUF, {family.string(), gguf.string(), "float"}))
      GTEST_SKIP() << "no Python with gguf: tools/setup.sh --tests";
    try {
      const Json config = PatchedConfig(gguf, row);
      GoldenRun run;
      run.config_json = &config;
      run.weights = gguf;
      const GoldenErrors errors = CompareWithGolden(family, run);
      EXPECT_GE(errors.of.size(), 5U) << row.family;
      EXPECT_LT(errors.worst, 2e-5) << row.family << " " << errors.worst_name;
      std::cout << "[   gguf   ] " << row.family << ": worst " << errors.worst << " ("
                << errors.worst_name << ")\n";
    } catch (const InputError& error) {
      ADD_FAILURE() << row.family << ": " << error.what();
    }
  }
}

// The tensors take several quantized types in turn. Only models with A_log may differ slightly: it
// is recovered by a logarithm, which numpy and LibTorch round differently.
TEST(GgufModels, GiveTheBitsOfTheirDenseCheckpoint) {
  const fs::path scratch = TestScratch("gguf-dense");
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 24; ++i) ids.push_back(i * 7 % 31);
  for (const Row& row : kRows) {
    const fs::path family = TestData(std::string("families/") + row.family);
    const fs::path gguf = scratch / (std::string(row.family) + ".gguf"),
                   dense = scratch / row.family;
    if (!RunPython(OSCAR_MAKE_GGUF, {family.string(), gguf.string(), "mixed", dense.string()}))
      GTEST_SKIP() << "no Python with gguf: tools/setup.sh --tests";
    try {
      const Json config = PatchedConfig(gguf, row);
      const auto mine = RunTokens(gguf, config, {ids}), theirs = RunTokens(dense, config, {ids});
      ASSERT_EQ(mine.size(), theirs.size());
      const bool has_log =
          std::string(row.family).starts_with("qwen3_5") || std::string(row.family) == "qwen3_next";
      for (const auto& [name, x] : mine) {
        if (has_log) {
          EXPECT_LT(RelativeError(x, theirs.at(name)), 1e-5) << row.family << " " << name;
        } else {
          EXPECT_TRUE(x.equal(theirs.at(name))) << row.family << " " << name;
        }
      }
    } catch (const InputError& error) {
      ADD_FAILURE() << row.family << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace oscar
