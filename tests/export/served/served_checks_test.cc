// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Directories that are silently wrong, each in one way, and directories that are right: the doctor
// finds the one thing in every one of the first, and nothing in the others.
#include "export/served/served_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "export/runtimes/exporter.h"
#include "linalg/error.h"
#include "tests/export/served/broken_directories.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// What is said of a directory in a runtime, but for remarks.
std::vector<std::string> Found(const fs::path& directory, unsigned runtime) {
  std::vector<std::string> names;
  for (const ServedVerdict& verdict : JudgeServed(ReadServedDirectory(directory), runtime))
    for (const ServedFinding& finding : verdict.findings)
      if (finding.check->effect != ServedEffect::kRemark)
        names.push_back(fmt::format("{}: {}", finding.check->name, finding.found));
  return names;
}

TEST(Served, FindsEveryWayOfBeingSilentlyWrong) {
  size_t number = 0;
  std::set<std::string_view> seen;
  for (const BrokenDirectory& broken : BrokenDirectories()) {
    const fs::path directory =
        TestScratch(fmt::format("served_broken_{}_{}", number++, broken.check));
    broken.make(directory);
    const std::vector<std::string> found = Found(directory, broken.runtime);
    EXPECT_TRUE(std::ranges::any_of(found,
                                    [&](const std::string& line) {
                                      return line.starts_with(std::string(broken.check) + ": ");
                                    }))
        << broken.check << " in " << directory << "\n"
        << fmt::format("{}", fmt::join(found, "\n"));
    // What is wrong is said once, or with what follows from it.
    EXPECT_LE(found.size(), 3U) << broken.check << "\n"
                                << fmt::format("{}", fmt::join(found, "\n"));
    seen.insert(broken.check);
  }
  EXPECT_GE(number, 30U);
  // Every row of the table that finds something finds it here.
  for (const ServedCheck& check : ServedChecks()) {
    if (check.effect == ServedEffect::kRemark) continue;
    EXPECT_TRUE(seen.contains(check.name)) << check.name << " has no broken directory";
  }
}

TEST(Served, FindsNothingWhereNothingIsWrong) {
  const auto nothing = [](auto&) {};
  const std::pair<unsigned, Make> sound[] = {
      {kServedVllm | kServedSglang, Of(nothing)},
      {kServedVllm | kServedSglang | kServedTrtllm, OfModelOpt(nothing)},
      {kServedVllm, Of([](ServedSample& s) {
         // A scale for each KV head.
         s.quantization()["kv_cache_scheme"]["strategy"] = "attn_head";
         for (auto& [name, tensor] : s.tensors())
           if (name.ends_with("_scale")) tensor = {DType::kF32, {2, 1, 1}, {0.5F, 0.25F}};
       })},
      {kServedVllm | kServedSglang, Of([](ServedSample& s) {
         // An overlay and its index.
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
         s.Scales(".k_scale", ".v_scale", AllServedLayers(), "model-kvscales.safetensors");
         s.texts["model.safetensors.index.json"] = s.Index().dump();
       })},
      {kServedVllm, Changed(Hybrid(), nothing)},
      {kServedSglang, Changed(ParamSample(), nothing)},
      {kServedVllm | kServedSglang, Of([](ServedSample& s) {
         // FP8 weights, whose configuration has no word for the cache.
         s.quantization() = {{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}};
       })},
      {kServedVllm | kServedSglang | kServedTrtllm, Of([](ServedSample& s) {
         // Nothing for a cache at all.
         s.config.erase("quantization_config");
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
       })},
      {kServedVllm, Of([](ServedSample& s) {
         // Scales that are computed while serving.
         s.quantization()["kv_cache_scheme"]["dynamic"] = true;
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
       })},
      {kServedOnnx, Genai(nothing)},
      {kServedOnnx, Genai(
                        [](Json& j) {
                          j["scales"] = {{"k_scales", {0.1, 0.2}}, {"v_scales", {0.1, 0.2}}};
                          j["layer_ids"] = {1, 3};
                        },
                        Hybrid().config)},
      {kServedSglang | kServedSglangOct | kServedVllm, Pair(Rotations(AllServedLayers()))},
      {kServedSglangOct, Pair(Centred(), SglangVersion::kV3)},
      // An absorbed copy, whose pair turns keys alone: its rotation of values is the identity.
      {kServedSglang | kServedSglangOct | kServedVllm,
       Pair(TurningKeysAlone(), SglangVersion::kV1,
            [](const fs::path& directory) {
              WriteFileAtomically(directory / "oscar_fold.json", R"({"values": "rotation"})");
            })},
      {kServedLlamacpp, Gguf([](ServedGgufSample& g) {
         AddRotations(g, {0, 1, 2, 3}, {0, 1, 2, 3});
       })},
      {kServedLlamacpp, Gguf([](ServedGgufSample& g) {
         AddRotations(g, {0, 1, 2, 3}, {});
       })},
      {kServedLlamacpp, Both(Gguf(nothing), Gguf(nothing, GgufMeans(), "means.gguf"))},
      {kServedVllm, OuterScales(nothing, LatentConfig())},
  };
  size_t number = 0;
  for (const auto& [runtimes, make] : sound) {
    const fs::path directory = TestScratch(fmt::format("served_sound_{}", number++));
    make(directory);
    for (const NamedRuntime& runtime : ServedRuntimes()) {
      if ((runtimes & runtime.runtime) == 0) continue;
      const std::vector<std::string> found = Found(directory, runtime.runtime);
      EXPECT_TRUE(found.empty()) << number - 1 << " in " << runtime.name << ": "
                                 << fmt::format("{}", fmt::join(found, "\n"));
    }
  }
  EXPECT_GE(number, 10U);
}

// What it says to run instead is there to be run.
TEST(Served, RemediesNameExportersThatThereAre) {
  for (const ServedCheck& check : ServedChecks()) {
    const std::string remedy(check.remedy);
    constexpr std::string_view kTo = "--to ";
    for (size_t at = remedy.find(kTo); at != remedy.npos; at = remedy.find(kTo, at + 1)) {
      const size_t begin = at + kTo.size();
      const std::string name = remedy.substr(begin, remedy.find_first_of(" ,", begin) - begin);
      if (name == "the") continue;  // "the runtime's name"
      EXPECT_NE(std::ranges::find(AllExporters(), name, &Exporter::name), AllExporters().end())
          << check.name << ": " << remedy;
    }
  }
}

// Without a runtime, those are judged that read anything of what is there.
TEST(Served, JudgesWhoeverReadsIt) {
  const fs::path directory = TestScratch("served_whoever");
  WriteServed(directory, SoundSample());
  const std::vector<ServedVerdict> verdicts = JudgeServed(ReadServedDirectory(directory), 0);
  ASSERT_EQ(verdicts.size(), 3U);
  EXPECT_EQ(verdicts[0].runtime, "vllm");
  EXPECT_FALSE(verdicts[0].wrong());
  EXPECT_EQ(verdicts[0].loads,
            (std::vector<std::string>{"8 scales (k_scale)", "FP8 of config.json"}));
  EXPECT_FALSE(verdicts[1].wrong());
  EXPECT_EQ(verdicts[2].runtime, "trtllm");
  EXPECT_TRUE(verdicts[2].wrong());
}

// Whatever lies in the directory, the doctor ends with a verdict.
TEST(Served, HostileFilesAreFindingsAndNoMore) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const std::pair<const char*, std::string> files[] = {
      {"a.json", deep},
      {"b.json", "{\"kv_cache\": {\"scaling_factor\": 7}}"},
      {"c.json", "{\"scales\": {\"k_scales\": 3}}"},
      {"d.json", "{\"format\": \"nvfp4_ds_mla_outer_scale_v1\"}"},
      {"e.json", "{\"kv_cache\": {\"scaling_factor\": {\"0\": {\"x\": {}}}}}"},
      {"f.json", "\xff\xfe"},
      {"g.safetensors", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)},
      {"h.gguf", std::string("GGUF\3\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0", 24)},
      {"k_rotation.pt", "PK\3\4 and nothing"},
      {"model.safetensors.index.json", "{\"weight_map\": [1, 2]}"},
      {"hf_quant_config.json", "{\"quantization\": {\"kv_cache_quant_algo\": 3}}"},
      {"oscar_fold.json", "[1]"},
  };
  const fs::path all = TestScratch("served_hostile");
  for (const auto& [name, bytes] : files) WriteFileAtomically(all / name, bytes);
  for (const char* config :
       {"{}", "[]", "{\"model_type\": 3, \"num_hidden_layers\": -5}", "{\"text_config\": []}",
        "{\"num_hidden_layers\": 9223372036854775807, \"layer_types\": [1]}",
        "{\"quantization_config\": {\"kv_cache_scheme\": [], \"quant_method\": {}}}",
        "{\"quantization_config\": {\"quant_method\": \"modelopt\", \"kv_cache_quantized_layers\": "
        "{\"a\": 3}, \"kv_cache_quant_algo\": \"\"}}"}) {
    WriteFileAtomically(all / "config.json", config);
    for (const NamedRuntime& runtime : ServedRuntimes())
      EXPECT_NO_THROW(Found(all, runtime.runtime)) << config;
  }
  EXPECT_THROW(ReadServedDirectory(all / "none"), InputError);
}

}  // namespace
}  // namespace oscar
