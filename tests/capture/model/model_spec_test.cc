// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/model_spec.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Everything the arithmetic depends on, as text.
std::string Arithmetic(const ModelSpec& spec) {
  std::ostringstream text;
  text << spec.model_type << ' ' << spec.hidden_size << ' ' << spec.vocab_size << ' '
       << spec.max_positions << ' ' << spec.rms_norm_eps << ' ' << spec.tied_head << ' '
       << spec.rope_description << ' ' << spec.config_dtype;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& a = layer.attention;
    text << '\n'
         << a.num_q_heads << ' ' << a.num_kv_heads << ' ' << a.head_dim << ' ' << a.scale << ' '
         << a.window.value_or(-1) << ' ' << a.qk_norm << ' ' << a.q.bias << ' ' << a.o.bias << ' '
         << layer.mlp.up.bias;
  }
  for (const TensorNeed& need : AllTensors(spec)) text << '\n' << need.name;
  return text.str();
}

TEST(ModelSpec, BothSpellingsGiveTheSameModel) {
  for (const char* model : {"arch/qwen2-swa", "arch/llama"}) {
    const auto read = [&](const char* name) {
      return ReadModelSpec(ReadJsonFile((TestData(model) / name).string()));
    };
    EXPECT_EQ(Arithmetic(read("config.json")), Arithmetic(read("config.legacy.json"))) << model;
  }
}

TEST(ModelSpec, ReadsTheBundledModel) {
  const ModelSpec spec = ReadModelSpec(TestData("tiny-qwen3"));
  EXPECT_EQ(spec.model_type, "qwen3");
  EXPECT_EQ(spec.layers.size(), 4u);
  EXPECT_EQ(spec.layers[3].layer_id, 3);
  const AttentionSpec& attention = spec.layers[3].attention;
  EXPECT_EQ(attention.gqa_ratio(), 2);
  EXPECT_EQ(attention.head_dim, 64);
  EXPECT_DOUBLE_EQ(attention.scale, 0.125);
  EXPECT_TRUE(attention.qk_norm);
  EXPECT_EQ(attention.k.weight, "model.layers.3.self_attn.k_proj.weight");
  EXPECT_EQ(attention.k.out_features, 128);
  EXPECT_FALSE(attention.window);
  EXPECT_TRUE(spec.tied_head);
  EXPECT_EQ(spec.head.weight, spec.embedding);
  EXPECT_EQ(spec.rope_description, "default theta=1000000");
}

TEST(ModelSpec, OnlyTheLayersFromMaxWindowLayersOnSlide) {
  const ModelSpec spec = ReadModelSpec(TestData("arch/qwen2-swa"));
  EXPECT_FALSE(spec.layers[0].attention.window);
  EXPECT_EQ(spec.layers[1].attention.window, 32);
  EXPECT_EQ(spec.layers[2].attention.window, 32);
}

TEST(ModelSpec, NothingSlidesUnlessUseSlidingWindowIsSet) {
  Json config = ReadJsonFile((TestData("arch/qwen2-swa") / "config.legacy.json").string());
  config["use_sliding_window"] = false;
  for (const LayerSpec& layer : ReadModelSpec(config).layers) EXPECT_FALSE(layer.attention.window);
}

TEST(ModelSpec, MistralTellsNullFromMissingWindow) {
  Json config = ReadJsonFile((TestData("arch/llama") / "config.legacy.json").string());
  for (const char* key : {"attention_bias", "mlp_bias"}) config.erase(key);
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  EXPECT_EQ(ReadModelSpec(config).layers[0].attention.window, 4096);
  config["sliding_window"] = nullptr;
  EXPECT_FALSE(ReadModelSpec(config).layers[0].attention.window);
  config["sliding_window"] = 7;
  EXPECT_EQ(ReadModelSpec(config).layers[2].attention.window, 7);
}

TEST(ModelSpec, MissingFieldsMeanWhatTheFamilySays) {
  Json config = ReadJsonFile((TestData("arch/llama") / "config.legacy.json").string());
  for (const char* key : {"rope_theta", "rope_scaling", "head_dim", "num_key_value_heads"})
    config.erase(key);
  const AttentionSpec llama = ReadModelSpec(config).layers[0].attention;
  EXPECT_EQ(llama.rope.theta, 10000.0);
  EXPECT_EQ(llama.num_kv_heads, 4);
  EXPECT_EQ(llama.head_dim, 16);

  Json qwen3 = SyntheticConfig(1, 64, 64, 4, 2, 32, 100);
  qwen3.erase("head_dim");
  EXPECT_EQ(ReadModelSpec(qwen3).layers[0].attention.head_dim, 128);
}

TEST(ModelSpec, BiasesFollowTheirFields) {
  Json config = ReadJsonFile((TestData("arch/llama") / "config.json").string());
  config["attention_bias"] = true;
  config["mlp_bias"] = true;
  const LayerSpec layer = ReadModelSpec(config).layers[1];
  EXPECT_EQ(layer.attention.o.bias, "model.layers.1.self_attn.o_proj.bias");
  EXPECT_EQ(layer.mlp.down.bias, "model.layers.1.mlp.down_proj.bias");
  const LayerSpec qwen2 = ReadModelSpec(TestData("arch/qwen2-swa")).layers[0];
  EXPECT_EQ(qwen2.attention.v.bias, "model.layers.0.self_attn.v_proj.bias");
  EXPECT_EQ(qwen2.attention.o.bias, "");
}

TEST(ModelSpec, AllPacksOfTheFamiliesReadTheSameInBothSpellings) {
  OSCAR_PACK_OR_SKIP(path, "arch");
  for (const char* pack :
       {"qwen2", "qwen2-swa", "qwen3", "llama", "llama-bias-tied", "mistral", "mistral-swa"}) {
    const auto read = [&](const char* name) {
      return ReadModelSpec(ReadJsonFile((path / pack / name).string()));
    };
    EXPECT_EQ(Arithmetic(read("config.json")), Arithmetic(read("config.legacy.json"))) << pack;
  }
}

}  // namespace
}  // namespace oscar
