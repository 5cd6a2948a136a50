// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests scales and types of 8-bit and 4-bit caches in the form that their readers expect: the
// tensor names of vLLM and SGLang, SGLang's QuantParamSchema, and the layer maps of ModelOpt and
// TensorRT-LLM. The largest x / scale must equal the largest number of the type.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/digest.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_writer.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

LayerMoments Moments(int id) {  // geometry of tiny-qwen3: 2 KV heads of dimension 64
  return SampleMoments(id, 60, 4 + static_cast<unsigned>(id), 64, 64);
}

// Writes an artifact with one layer for each element of `bits`: bits of key and of value codes.
Artifact WithBits(const fs::path& path, const std::vector<std::pair<int, int>>& bits) {
  const std::vector<SampleRecipe> recipes(bits.size(), SampleRecipes()[0]);
  WriteChosenArtifact(path, recipes, {.consumer = Consumer::kSglangOct, .fold = false}, Moments);
  Json manifest = ReadJsonFile((path / "manifest.json").string());
  for (size_t i = 0; i < bits.size(); ++i) {
    manifest["auto"]["layers"][i]["k_bits"] = bits[i].first;
    manifest["auto"]["layers"][i]["v_bits"] = bits[i].second;
  }
  std::ofstream(path / "manifest.json") << CanonicalJson(manifest);
  return Artifact::Open(path);
}
Artifact Tiny(const fs::path& path) { return WithBits(path, {{2, 2}, {2, 2}, {2, 2}, {2, 2}}); }

float LargestOf(const std::vector<double>& maxima, size_t begin, size_t end) {
  double largest = 0;
  for (size_t i = begin; i < end; ++i) largest = std::max(largest, maxima[i]);
  return static_cast<float>(largest);
}

std::vector<float> Values(const SafetensorsFile& file, const std::string& name) {
  const TensorView view = file.tensor(name);
  EXPECT_EQ(view.dtype, DType::kF32);
  std::vector<float> values(view.data.size() / sizeof(float));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

std::string Said(const fs::path& output) { return ReadText(output / "launch.txt"); }

TEST(KvScales, OverlayACheckpointThatStaysAsItIs) {
  const fs::path scratch = TestScratch("kv-scales"), model = TestData("tiny-qwen3");
  const std::string before = DigestFile(model / "model.safetensors").sha256;
  const Artifact artifact = Tiny(scratch / "a");
  WriteForRuntime(ExporterNamed("kv-scales"), artifact, {.checkpoint = model}, scratch / "out");
  EXPECT_EQ(DigestFile(model / "model.safetensors").sha256, before);
  const SafetensorsFile shard =
      SafetensorsFile::Open(scratch / "out" / "model-kvscales.safetensors");
  EXPECT_EQ(shard.tensors().size(), 8U);
  for (int i = 0; i < 4; ++i) {
    const LayerMoments moments = Moments(i);
    const std::string module = "model.layers." + std::to_string(i) + ".self_attn";
    EXPECT_EQ(Values(shard, module + ".k_scale"),
              (std::vector<float>{LargestOf(moments.key_abs_max, 0, 128) / 448.0F}));
    EXPECT_EQ(Values(shard, module + ".v_scale"),
              (std::vector<float>{LargestOf(moments.value_abs_max, 0, 128) / 448.0F}));
    EXPECT_EQ(shard.tensor(module + ".k_scale").shape, (std::vector<int64_t>{1}));
  }
  const Json index = ReadJsonFile((scratch / "out" / "model.safetensors.index.json").string());
  EXPECT_EQ(index.at("weight_map").at("model.layers.3.self_attn.v_scale"),
            "model-kvscales.safetensors");
  EXPECT_EQ(index.at("weight_map").at("model.norm.weight"), "model.safetensors");
  const Json config = ReadJsonFile((scratch / "out" / "config.json").string());
  const Json& scheme = config.at("quantization_config").at("kv_cache_scheme");
  EXPECT_EQ(config.at("quantization_config").at("quant_method"), "compressed-tensors");
  EXPECT_EQ(scheme.at("num_bits"), 8);
  EXPECT_EQ(scheme.at("type"), "float");
  EXPECT_EQ(scheme.at("strategy"), "tensor");
  EXPECT_EQ(scheme.at("symmetric"), true);
  EXPECT_FALSE(fs::exists(scratch / "out" / "model.safetensors"));
  EXPECT_TRUE(Says(Said(scratch / "out"), "cp -rL "));
}

TEST(KvScales, AWholeCopyIsAModelThatIsReadAsBefore) {
  const fs::path scratch = TestScratch("kv-scales-copy"), model = TestData("tiny-qwen3");
  WriteForRuntime(ExporterNamed("kv-scales"), Tiny(scratch / "a"),
                  {.checkpoint = model, .whole_copy = true, .per_head = true}, scratch / "out");
  const Checkpoint copy = Checkpoint::Open(scratch / "out");
  CheckTensors(ReadModelSpec(scratch / "out"), copy);
  EXPECT_EQ(DigestFile(scratch / "out" / "model-00001-of-00001.safetensors").sha256,
            DigestFile(model / "model.safetensors").sha256);
  EXPECT_TRUE(fs::exists(scratch / "out" / "tokenizer.json"));
  // LLM-Compressor stores scales per head in this shape, which vLLM flattens.
  const std::string name = "model.layers.1.self_attn.k_scale";
  EXPECT_EQ(copy.info(name).shape, (std::vector<int64_t>{2, 1, 1}));
  const LayerMoments moments = Moments(1);
  const SafetensorsFile shard =
      SafetensorsFile::Open(scratch / "out" / "model-kvscales.safetensors");
  EXPECT_EQ(Values(shard, name),
            (std::vector<float>{LargestOf(moments.key_abs_max, 0, 64) / 448.0F,
                                LargestOf(moments.key_abs_max, 64, 128) / 448.0F}));
  // The copy already has scales, so a second export is refused.
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     WriteForRuntime(ExporterNamed("kv-scales"), Tiny(scratch / "b"),
                                     {.checkpoint = scratch / "out"}, scratch / "again");
                   }),
                   "k_scale"));
  EXPECT_FALSE(fs::exists(scratch / "again"));
}

TEST(KvScales, AreRefusedForAnotherModelAndWithoutMaxima) {
  const fs::path scratch = TestScratch("kv-scales-refused"), model = TestData("tiny-qwen3");
  const auto refusal = [&](const Artifact& artifact) {
    const std::string said = ErrorOf<InputError>([&] {
      WriteForRuntime(ExporterNamed("kv-scales"), artifact, {.checkpoint = model}, scratch / "out");
    });
    EXPECT_FALSE(fs::exists(scratch / "out"));
    return said;
  };
  WriteSampleArtifact(scratch / "other");  // has layers 3 and 11
  EXPECT_TRUE(Says(refusal(Artifact::Open(scratch / "other")), "layer 11"));
  const std::vector<SampleRecipe> recipes(4, SampleRecipes()[0]);
  const auto write = [&](const char* name, const auto& change) {
    WriteChosenArtifact(scratch / name, recipes, {.fold = false}, [&](int id) {
      LayerMoments moments = Moments(id);
      change(moments);
      return moments;
    });
    return Artifact::Open(scratch / name);
  };
  EXPECT_TRUE(Says(refusal(write("old", [](LayerMoments& m) { m.value_abs_max.clear(); })),
                   "layer 0, values: the largest magnitude is unknown"));
  EXPECT_TRUE(Says(
      refusal(write("dead", [](LayerMoments& m) { std::fill_n(m.key_abs_max.begin(), 64, 0.0); })),
      "layer 0, keys: KV head 0 has a largest magnitude of 0"));
}

// A QuantParamSchema contains the dtype and, for each rank of the server, a factor for every layer.
TEST(SglangScales, AreTheServersSchema) {
  const fs::path scratch = TestScratch("sglang-scales");
  const Artifact artifact = Tiny(scratch / "a");
  WriteForRuntime(ExporterNamed("sglang-scales"), artifact, {}, scratch / "out");
  EXPECT_TRUE(Says(Said(scratch / "out"), "/kv_cache_scales_tp1.json\n"));
  for (const int ranks : {1, 2, 4, 8}) {
    const Json cache =
        ReadJsonFile(
            (scratch / "out" / ("kv_cache_scales_tp" + std::to_string(ranks) + ".json")).string())
            .at("kv_cache");
    EXPECT_EQ(cache.at("dtype"), "float8_e4m3fn");
    ASSERT_EQ(std::ssize(cache.at("scaling_factor")), ranks);
    for (const auto& [rank, factors] : cache.at("scaling_factor").items()) {
      ASSERT_EQ(factors.size(), 4U);
      for (int i = 0; i < 4; ++i) {
        const LayerMoments moments = Moments(i);
        const float largest = std::max(LargestOf(moments.key_abs_max, 0, 128),
                                       LargestOf(moments.value_abs_max, 0, 128));
        EXPECT_EQ(factors.at(std::to_string(i)).get<float>(), largest / 448.0F);
      }
    }
  }
}

TEST(ModelOpt, SaysTypesOfLayersAndTheirScales) {
  const fs::path scratch = TestScratch("modelopt"), model = TestData("tiny-qwen3");
  const Artifact artifact = WithBits(scratch / "a", {{2, 2}, {8, 3}, {3, 8}, {8, 8}});
  WriteForRuntime(ExporterNamed("modelopt"), artifact, {.checkpoint = model, .whole_copy = true},
                  scratch / "out");
  const Json own =
      ReadJsonFile((scratch / "out" / "hf_quant_config.json").string()).at("quantization");
  const Json config =
      ReadJsonFile((scratch / "out" / "config.json").string()).at("quantization_config");
  for (const Json* said : {&own, &config}) {
    EXPECT_EQ(said->at("kv_cache_schema_version"), 1);
    EXPECT_EQ(said->at("kv_cache_quant_algo"), "MIXED_PRECISION");
    EXPECT_TRUE(said->at("quant_algo").is_null());
    const Json expected = {{"model.layers.0.self_attn", {{"quant_algo", "NVFP4"}}},
                           {"model.layers.1.self_attn", {{"quant_algo", "FP8_K_NVFP4_V"}}},
                           {"model.layers.2.self_attn", {{"quant_algo", "FP8"}}},
                           {"model.layers.3.self_attn", {{"quant_algo", "FP8"}}}};
    EXPECT_EQ(said->at("kv_cache_quantized_layers"), expected);
  }
  EXPECT_EQ(config.at("quant_method"), "modelopt");
  const SafetensorsFile shard =
      SafetensorsFile::Open(scratch / "out" / "model-kvscales.safetensors");
  const auto scale = [&](int layer, const char* name) {
    return Values(shard, "model.layers." + std::to_string(layer) + ".self_attn." + name).at(0);
  };
  EXPECT_EQ(scale(0, "k_proj.k_scale"), LargestOf(Moments(0).key_abs_max, 0, 128) / 2688.0F);
  EXPECT_EQ(scale(1, "k_proj.k_scale"), LargestOf(Moments(1).key_abs_max, 0, 128) / 448.0F);
  EXPECT_EQ(scale(1, "v_proj.v_scale"), LargestOf(Moments(1).value_abs_max, 0, 128) / 2688.0F);
  EXPECT_EQ(scale(2, "v_proj.v_scale"), LargestOf(Moments(2).value_abs_max, 0, 128) / 448.0F);
  CheckTensors(ReadModelSpec(scratch / "out"), Checkpoint::Open(scratch / "out"));
}

TEST(Trtllm, SaysBitsByLayer) {
  const fs::path scratch = TestScratch("recipes");
  const Artifact artifact = WithBits(scratch / "a", {{8, 8}, {2, 4}, {2, 3}, {4, 8}});
  WriteForRuntime(ExporterNamed("trtllm"), artifact, {}, scratch / "trtllm");
  EXPECT_EQ(ReadText(scratch / "trtllm" / "extra_llm_api_options.yaml"),
            "kv_cache_config:\n  dtype: \"0:fp8,1-2:nvfp4,3:fp8\"\n");
  WriteSampleArtifact(scratch / "none");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     WriteForRuntime(ExporterNamed("trtllm"), Artifact::Open(scratch / "none"), {},
                                     scratch / "out");
                   }),
                   "contains no automatic choice"));
}

}  // namespace
}  // namespace oscar
