// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests what a quantization_config means for a module, and which forms are refused by name.
#include "capture/checkpoint/quantization_config.h"

#include <gtest/gtest.h>

#include <chrono>

#include "capture/checkpoint/module_rules.h"
#include "linalg/base/error.h"
#include "tests/capture/checkpoint/checkpoint_files.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

QuantizationConfig Read(const std::string& quantization) {
  return QuantizationConfig::Read({{"quantization_config", Json::parse(quantization)}});
}

std::string SchemeName(const std::string& quantization, const std::string& module) {
  const QuantizationConfig config = Read(quantization);
  const WeightScheme* scheme = config.SchemeOf(module);
  return scheme == nullptr ? "plain" : scheme->name;
}

// Returns a compressed-tensors config with one group.
std::string Group(const std::string& weights, const std::string& format,
                  const std::string& more = "") {
  return R"({"quant_method": "compressed-tensors", "format": ")" + format +
         R"(", "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" + weights + "}}" +
         more + "}";
}

constexpr const char* kInt4 =
    R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32})";

TEST(QuantizationConfig, NoneIsPlain) {
  EXPECT_TRUE(QuantizationConfig::Read(Json::object()).plain());
  EXPECT_TRUE(QuantizationConfig::Read({{"quantization_config", nullptr}}).plain());
  EXPECT_EQ(QuantizationConfig().SchemeOf("m"), nullptr);
}

TEST(QuantizationConfig, TextPartsAndOldSpellings) {
  const Json fp8 = {{"quant_method", "fp8"}}, awq = {{"quant_method", "awq"}};
  EXPECT_EQ(QuantizationConfig::Read({{"compression_config", fp8}}).method(), "fp8");
  const Json nested = {{"text_config", {{"quantization_config", fp8}}}};
  EXPECT_EQ(QuantizationConfig::Read(nested).method(), "fp8");
  Json both = nested;
  both["quantization_config"] = fp8;
  EXPECT_EQ(QuantizationConfig::Read(both).method(), "fp8");
  both["quantization_config"] = awq;
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { QuantizationConfig::Read(both); }), "contradicts"));
}

TEST(QuantizationConfig, MixedGroupsGoByNameThenExpressionThenClass) {
  const std::string config = R"({"quant_method": "compressed-tensors", "format": "mixed-precision",
    "ignore": ["lm_head", "re:.*router"], "config_groups": {
      "a": {"format": "float-quantized", "targets": ["re:.*self_attn.*_proj$"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
      "b": {"format": "pack-quantized", "targets": ["Linear"], "weights": )" +
                             std::string(kInt4) + R"(},
      "c": {"format": "int-quantized", "targets": ["model.layers.0.self_attn.q_proj"],
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}},
      "d": {"targets": ["model.layers.1.mlp"], "weights": null}}})";
  EXPECT_EQ(SchemeName(config, "model.layers.0.self_attn.q_proj"),
            "compressed-tensors int-quantized 8-bit");
  EXPECT_EQ(SchemeName(config, "model.layers.0.self_attn.k_proj"),
            "compressed-tensors float-quantized 8-bit");
  EXPECT_EQ(SchemeName(config, "model.layers.0.self_attn.k_proj.x"),
            "compressed-tensors pack-quantized 4-bit");
  EXPECT_EQ(SchemeName(config, "model.layers.1.mlp"), "plain");
  EXPECT_EQ(SchemeName(config, "lm_head"), "plain");
  EXPECT_EQ(SchemeName(config, "model.layers.0.router.x"), "plain");  // re.match: a prefix suffices
  EXPECT_EQ(SchemeName(config, "x"), "compressed-tensors pack-quantized 4-bit");
}

TEST(QuantizationConfig, GptqSettingsOfSingleModules) {
  const std::string config = R"({"quant_method": "gptq", "bits": 4, "group_size": 128,
    "dynamic": {"-:.*gate$": {}, "+:.*\\.down_proj$": {"bits": 8, "group_size": 32}}})";
  EXPECT_EQ(SchemeName(config, "m.mlp.gate"), "plain");
  EXPECT_EQ(SchemeName(config, "m.mlp.down_proj"), "gptq 8-bit");
  EXPECT_EQ(SchemeName(config, "m.mlp.gate_proj"), "gptq 4-bit");
  EXPECT_EQ(Read(config).SchemeOf("m.mlp.down_proj")->group_size, 32);
  EXPECT_EQ(Read(config).SchemeOf("m.mlp.up_proj")->group_size, 128);
}

TEST(QuantizationConfig, ModelOptInEitherFile) {
  const Json file = Json::parse(R"({"producer": {"name": "modelopt"}, "quantization":
    {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "*.mlp.gate"]}})");
  const QuantizationConfig config = QuantizationConfig::Read(Json::object(), "config.json", &file);
  EXPECT_EQ(config.method(), "modelopt");
  EXPECT_EQ(config.SchemeOf("lm_head"), nullptr);
  EXPECT_EQ(config.SchemeOf("model.layers.0.mlp.gate"), nullptr);
  ASSERT_NE(config.SchemeOf("model.layers.0.mlp.gate_proj"), nullptr);
  EXPECT_TRUE(config.unknown_fields().empty());
  const Json nvfp4 = {
      {"quantization_config", {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}}};
  EXPECT_TRUE(
      Says(ErrorOf<InputError>([&] { QuantizationConfig::Read(nvfp4, "config.json", &file); }),
           "contradicts"));
}

TEST(QuantizationConfig, AMissingMethodIsThatOfTheProducer) {
  for (const char* fields :
       {R"({"quant_algo": "FP8", "ignore": ["lm_head"], "kv_cache_scheme": "FP8",
                                 "producer": {"name": "modelopt", "version": "0.31.0"}})",
        R"({"quant_algo": "FP8", "ignore": ["lm_head"], "quant_method": null})"}) {
    const Json config = {{"quantization_config", Json::parse(fields)}};
    const QuantizationConfig read = QuantizationConfig::Read(config);
    EXPECT_EQ(read.method(), "modelopt");
    EXPECT_EQ(read.SchemeOf("lm_head"), nullptr);
    ASSERT_NE(read.SchemeOf("model.layers.0.mlp.gate_proj"), nullptr);
    EXPECT_TRUE(read.unknown_fields().empty());
  }
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     QuantizationConfig::Read({{"quantization_config", {{"bits", 4}}}});
                   }),
                   "quant_method"));
}

TEST(QuantizationConfig, OldFilesBesideIt) {
  const auto directory = TestScratch("old_files");
  WriteText(directory / "config.json", "{}");
  EXPECT_TRUE(QuantizationConfig::ReadDirectory(directory).plain());
  WriteText(directory / "quant_config.json",
            R"({"zero_point": true, "q_group_size": 64, "w_bit": 4, "version": "GEMM"})");
  EXPECT_EQ(QuantizationConfig::ReadDirectory(directory).method(), "awq");
  WriteText(directory / "quantize_config.json", R"({"bits": 3, "group_size": 64})");
  const QuantizationConfig config = QuantizationConfig::ReadDirectory(directory);
  EXPECT_EQ(config.SchemeOf("m")->name, "gptq 3-bit");
  EXPECT_EQ(config.SchemeOf("m")->group_size, 64);
}

TEST(QuantizationConfig, ModelOptLayersOneByOne) {
  const std::string config = R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"m.q_proj": {"quant_algo": "FP8"},
                         "m.mlp.*": {"quant_algo": "NVFP4", "group_size": 16},
                         "m.experts": {"quant_algo": "W4A16_NVFP4"}}})";
  EXPECT_EQ(SchemeName(config, "m.q_proj"), "modelopt FP8");
  EXPECT_EQ(SchemeName(config, "m.mlp.up_proj"), "modelopt NVFP4");
  EXPECT_EQ(SchemeName(config, "m.experts.3.up_proj"), "modelopt W4A16_NVFP4");
  EXPECT_EQ(SchemeName(config, "m.experts_of_others"), "plain");
  EXPECT_EQ(SchemeName(config, "m.k_proj"), "plain");
}

TEST(QuantizationConfig, RefusesByName) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", "bitsandbytes"},
      {R"({"quant_method": "hqq"})", "Supported: awq, compressed-tensors, fbgemm_fp8, fp8, gptq"},
      {R"({"quant_method": "exl2"})", "exl2"},
      {R"({"load_in_8bit": true})", "quant_method"},
      {R"({"quant_method": 3})", "quant_method"},
      {R"([3])", "object"},
      {R"({"quant_method": "gptq", "bits": 5})", "bits"},
      {R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"})", "marlin"},
      {R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_p"})", "gptq, gptq_v2"},
      {R"({"quant_method": "gptq", "bits": 4, "is_marlin_format": true})", "is_marlin_format"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 0})", "group_size"},
      {R"({"quant_method": "gptq", "bits": 4, "pack_dtype": "int16"})", "pack_dtype"},
      {R"({"quant_method": "gptq", "bits": 4, "rotation": "hadamard"})", "rotation"},
      {R"({"quant_method": "awq", "bits": 4, "version": "gemv"})", "version"},
      {R"({"quant_method": "awq", "bits": 4, "zero_point": false})", "zero_point"},
      {R"({"quant_method": "awq", "bits": 8})", "bits"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "fmt"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", "weight_block_size"},
      {R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"})", "W4A16_AWQ"},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32})", "group_size"},
      {R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"})", "quantized_layers"},
      {Group(kInt4, "marlin-24"), "marlin-24"},
      {Group(kInt4, ""), "format"},
      {Group(kInt4, "nvfp4-pack-quantized"), "nvfp4-pack-quantized"},
      {Group(kInt4, "float-quantized"), "float-quantized"},
      {Group(R"({"num_bits": 4, "strategy": "group"})", "pack-quantized"), "group_size"},
      {Group(R"({"num_bits": 8, "type": "float", "strategy": "block"})", "float-quantized"),
       "block_structure"},
      {Group(R"({"num_bits": 4, "strategy": "attn_head"})", "pack-quantized"), "strategy"},
      {Group(R"({"num_bits": 4, "dynamic": true})", "pack-quantized"), "dynamic"},
      {Group(R"({"num_bits": 4, "strategy": "channel", "actorder": "other"})", "pack-quantized"),
       "actorder"},
      {Group(kInt4, "pack-quantized", R"(, "sparsity_config": {"format": "sparse-24-bitmask"})"),
       "sparsity_config"},
      {Group(kInt4, "pack-quantized", R"(, "transform_config": {"config_groups": {"a": 1}})"),
       "transform_config"},
      {Group(kInt4, "pack-quantized", R"j(, "ignore": ["re:(?P<x>a)"])j"), "(?P<x>a)"},
      {Group(kInt4, "pack-quantized", R"(, "ignore": ["re:a{,3}"])"), "a{,3}"},
      {Group(kInt4, "pack-quantized", R"(, "ignore": "lm_head")"), "ignore"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { Read(text); }), expected));
}

TEST(QuantizationConfig, UnknownFieldsAreNamed) {
  const QuantizationConfig config =
      Read(Group(kInt4, "pack-quantized", R"(, "secret_scale": 2, "version": "0.12")"));
  EXPECT_EQ(config.unknown_fields(), std::vector<std::string>{"quantization_config.secret_scale"});
}

TEST(QuantizationConfig, ReadsEveryPack) {
  OSCAR_PACK_OR_SKIP(path, "formats");
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(QuantizationConfig::ReadDirectory(entry.path()).unknown_fields().empty())
        << entry.path();
  }
}

TEST(ModuleRules, ReadExpressionsAsPythonDoes) {
  ModuleRules rules;
  rules.AddRegex(R"(model\.layers\.(0|11)\..*_proj$)", 1, "test");
  rules.AddRegex("(?!.*vision).*tower", 2, "test");
  rules.AddRegex("layers\\.\\d{1,2}\\.", 5, "test");
  rules.AddGlob("a.*.c?", 3, "test");
  EXPECT_EQ(rules.Match("model.layers.11.q_proj"), 1u);
  EXPECT_EQ(rules.Match("model.layers.1.q_proj"), std::nullopt);
  EXPECT_EQ(rules.Match("x.model.layers.0.q_proj"), std::nullopt);  // anchored at the start
  EXPECT_EQ(rules.Match("text.tower.tail"), 2u);                    // not anchored at the end
  EXPECT_EQ(rules.Match("vision.tower"), std::nullopt);
  rules.AddRegex("lm[._]head[^]{]", 6, "test");
  EXPECT_EQ(rules.Match("layers.27.mlp"), 5u);
  EXPECT_EQ(rules.Match("lm_headx"), 6u);
  EXPECT_EQ(rules.Match("lm_head]"), std::nullopt);
  EXPECT_EQ(rules.Match("layers.270.mlp"), std::nullopt);
  EXPECT_EQ(rules.Match("a.b.c1"), 3u);
  EXPECT_EQ(rules.Match("a.b.c12"), std::nullopt);
  rules.AddRegex("a.*", 4, "test");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { (void)rules.Match("a.b.c1"); }), "a.b.c1"));
}

// PCRE2 and Python read these patterns differently, or Python rejects them.
TEST(ModuleRules, RefuseWhatIsForeignToPython) {
  for (const char* pattern : {"a{,3}", "{", "(*ACCEPT)a", "(?R)", "(?|a|b)", "(?<n>a)", "(?i)a",
                              "[[:alpha:]]", "[^a[:alpha:]]", "[][.a.]]", "\\h", "\\1", "\\Z",
                              "(?C1)a", "(a", "*a", "[a", "a{2}{99999}", "\\"}) {
    ModuleRules rules;
    EXPECT_TRUE(
        Says(ErrorOf<InputError>([&] { rules.AddRegex(pattern, 0, "test"); }), "is not supported"));
  }
}

TEST(ModuleRules, HostileExpressionsEndInTime) {
  const auto begin = std::chrono::steady_clock::now();
  std::string lookaheads = "x";
  for (int i = 0; i < 12; ++i) lookaheads = "(?=.*" + lookaheads + ")";
  for (const std::string& pattern :
       {std::string("(a+)+$"), std::string("(a*)*b"), std::string("(a|aa)+$"),
        std::string("((a?)*)*c"), lookaheads}) {
    ModuleRules rules;
    rules.AddRegex(pattern, 0, "test");
    std::optional<size_t> found;
    const std::string why =
        ErrorOf<InputError>([&] { found = rules.Match(std::string(2000, 'a') + "!"); });
    EXPECT_EQ(found, std::nullopt) << pattern;
    if (!why.empty()) {
      EXPECT_TRUE(Says(why, "backtrack"));
    }
  }
  ModuleRules rules;
  EXPECT_THROW(rules.AddRegex(std::string(2000, '('), 0, "test"), InputError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace oscar
