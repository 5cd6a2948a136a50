// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the programs with 8-bit and 4-bit cache types that are chosen per layer: measures them,
// exports them for runtimes, and validates the cache that is served.
#include <gtest/gtest.h>

#include <algorithm>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/tools/small_runs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(CacheTypesProgram, AreMeasuredWrittenAndServed) {
  const fs::path scratch = TestScratch("cache_types"), artifact = scratch / "artifact";
  ASSERT_TRUE(
      Exits(RunProgram(OSCAR_CALIBRATE,
                       TinyRun(artifact) + ProgramStrings({"--for", "modelopt", "--bits", "6"})),
            0));
  const Json report = ReadJsonFile((artifact / "report.json").string());
  const Json& types = report.at("serving").at("cache_types");
  EXPECT_EQ(types.at("for"), "modelopt");
  EXPECT_LE(types.at("bits_stored"), 6);
  ASSERT_EQ(types.at("plans").size(), 3u);
  EXPECT_GE(types.at("curve").size(), 5u);
  for (const Json& layer : types.at("costs")) {
    for (const char* side : {"k", "v"}) {
      ASSERT_EQ(layer.at(side).size(), 2u);
      for (const Json& cost : layer.at(side)) {
        EXPECT_GT(cost.at("token_kl"), 0);
        EXPECT_EQ(cost.at("attention_kl") > 0, side == std::string("k"));
      }
      EXPECT_GT(layer.at(side).at(0).at("token_kl"), layer.at(side).at(1).at("token_kl"));
    }
  }
  // The curve is in ascending order of bits, so its KL falls from the first point to the last.
  EXPECT_GT(types.at("curve").front().at("token_kl"), types.at("curve").back().at("token_kl"));

  const auto write = [&](const char* to, std::vector<std::string> flags) {
    return RunProgram(
        OSCAR_EXPORT,
        ProgramStrings{artifact.string(), "--to", to, "-o", (scratch / to).string()} + flags);
  };
  ASSERT_EQ(write("modelopt", {"--model", TinyModel()}).code, 0);
  const Json config = ReadJsonFile((scratch / "modelopt" / "hf_quant_config.json").string());
  const Json& layers = config.at("quantization").at("kv_cache_quantized_layers");
  for (const Json& layer : types.at("layers")) {
    const std::string name =
        "model.layers." + std::to_string(layer.at("layer_id").get<int>()) + ".self_attn";
    const std::string algorithm = layer.at("k") == "bf16"    ? ""
                                  : layer.at("v") == "fp8"   ? "FP8"
                                  : layer.at("k") == "nvfp4" ? "NVFP4"
                                                             : "FP8_K_NVFP4_V";
    EXPECT_EQ(layers.contains(name), !algorithm.empty());
    if (algorithm.empty()) continue;
    EXPECT_EQ(layers.at(name).at("quant_algo"), algorithm);
  }
  // Exports for another runtime with these types, at another budget and without the model.
  ASSERT_EQ(write("trtllm", {"--bits", "4.5"}).code, 0);
  EXPECT_NE(ReadText(scratch / "trtllm" / "extra_llm_api_options.yaml").find("\"0-3:nvfp4\""),
            std::string::npos);
  fs::remove_all(scratch / "trtllm");
  EXPECT_EQ(write("trtllm", {"--bits", "3"}).code, 2);
  const ProgramExit removed = write("kvtuner", {"--bits", "5"});
  EXPECT_TRUE(Exits(removed, 2));
  EXPECT_NE(removed.err.find("which was removed; use trtllm or modelopt"), std::string::npos);

  // The error of the chosen mix of types lies between the errors of the two types alone.
  const ProgramExit served =
      RunProgram(OSCAR_VALIDATE,
                 Words("% --model % --device cpu --rows 16 --bootstrap 20 --sequences 1 --length "
                       "512 --needle-lengths 512 --needle-tasks single_1 --self-generate 0 -o % "
                       "--arms nvfp4_calibrated cache_types fp8_e4m3_calibrated",
                       {artifact.string(), TinyModel(), (scratch / "validation").string()}));
  ASSERT_LE(served.code, 1) << served.all();
  const Json arms =
      ReadJsonFile((scratch / "validation" / "report.json").string()).at("validation").at("arms");
  const auto kl = [&](const char* name) {
    const auto arm =
        std::ranges::find_if(arms, [&](const Json& a) { return a.at("name") == name; });
    return arm->at("text").at("token_kl").at("mean").get<double>();
  };
  EXPECT_LT(kl("cache_types"), kl("nvfp4_calibrated"));
  EXPECT_GT(kl("cache_types"), kl("fp8_e4m3_calibrated"));
}

TEST(CacheTypesProgram, WhatCannotBeIsRefusedFirst) {
  const fs::path scratch = TestScratch("cache_types_refused");
  for (const auto& [flags, why] :
       std::initializer_list<std::pair<std::vector<std::string>, const char*>>{
           {{"--for", "modelopt"}, "needs --bits"},
           {{"--for", "modelopt", "--bits", "4"}, "at least 4.5 bits per value"},
           {{"--for", "trtllm", "--bits", "6", "--effort", "quick"}, "--effort quick"},
           {{"--for", "any", "--bits", "12"}, "at most 8"},
           {{"--for", "any", "--bits", "1.5"}, "2-bit codes with their scales and zeros take 2.25"},
           {{"--for", "sglang-oct", "--bits", "1.5"}, "sglang-oct stores 2 bits everywhere"}}) {
    const ProgramExit refused =
        RunProgram(OSCAR_CALIBRATE, TinyRun(scratch / "a") + ProgramStrings(flags));
    EXPECT_TRUE(Exits(refused, 2));
    EXPECT_NE(refused.all().find(why), std::string::npos) << refused.all();
    EXPECT_FALSE(fs::exists(scratch / "a"));
  }
}

}  // namespace
}  // namespace oscar
