// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/model_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "capture/model/families/families.h"
#include "linalg/base/error.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns, as text, everything that the arithmetic depends on.
std::string Arithmetic(const ModelSpec& spec) {
  std::ostringstream text;
  text << spec.model_type << ' ' << spec.hidden_size << ' ' << spec.vocab_size << ' '
       << spec.max_positions << ' ' << spec.rms_norm_eps << ' ' << spec.tied_head << ' '
       << spec.rope_description << ' ' << spec.config_dtype;
  text << ' ' << spec.embedding_multiplier << ' ' << spec.logit_multiplier << ' '
       << spec.logit_softcap;
  for (const LayerSpec* layer : AllLayers(spec)) {
    const AttentionSpec& a = layer->attention;
    text << '\n'
         << layer->layer_id << ' ' << a.num_q_heads << ' ' << a.num_kv_heads << ' ' << a.head_dim
         << ' ' << a.v_head_dim << ' ' << a.scale << ' ' << a.window.value_or(-1) << ' '
         << a.qk_norm << ' ' << DescribeRope(a.rope) << ' ' << a.rope.rotary_dim << ' ' << a.softcap
         << ' ' << a.gated << ' ' << a.v_from_k << ' ' << a.position_beta << ' '
         << a.position_period << ' ' << a.shared_kv.value_or(-1) << ' ' << a.q.first_row << ' '
         << layer->mlp.intermediate_size << ' ' << layer->residual_multiplier << ' '
         << layer->parallel << ' ' << a.clamp << ' ' << a.norm_after_rope << ' ' << a.v_scale << ' '
         << a.position_offset << ' ' << static_cast<int>(layer->mlp.activation);
    if (layer->experts) {
      const RouterSpec& router = layer->experts->router;
      text << ' ' << static_cast<int>(router.score) << ' ' << router.top_k << ' '
           << router.normalize << ' ' << router.scale << ' ' << router.num_expert_sets << ' '
           << router.top_expert_sets << ' ' << router.set_terms << ' ' << router.mixer_distance
           << ' ' << router.weigh_input << ' ' << layer->experts->shared_size;
    }
    for (const double factor : InverseFrequencies(a.rope, 100000)) text << ' ' << factor;
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

// The defaults of transformers' Qwen2Config and Qwen3Config are 28 layers for max_window_layers and
// 4096 tokens for sliding_window.
TEST(ModelSpec, MissingWindowFieldsMeanWhatTheLibrarySays) {
  Json config = ReadJsonFile((TestData("arch/qwen2-swa") / "config.legacy.json").string());
  config.erase("max_window_layers");
  for (const LayerSpec& layer : ReadModelSpec(config).layers) EXPECT_FALSE(layer.attention.window);
  config["max_window_layers"] = 2;
  config.erase("sliding_window");
  EXPECT_FALSE(ReadModelSpec(config).layers[1].attention.window);
  EXPECT_EQ(ReadModelSpec(config).layers[2].attention.window, 4096);
}

// With use_sliding_window, modeling_qwen3_moe.py uses a sliding window in every layer. transformers
// writes no max_window_layers, and ignores it in releases that have it.
TEST(ModelSpec, QwenWithExpertsSlidesInEveryLayer) {
  Json config = ReadJsonFile((TestData("families") / "qwen3_moe" / "config.json").string());
  config["use_sliding_window"] = true;
  config["sliding_window"] = 7;
  for (const Json& first : {Json(), Json(1)}) {
    config["max_window_layers"] = first;
    for (const LayerSpec& layer : ReadModelSpec(config).layers)
      EXPECT_EQ(layer.attention.window, 7);
  }
  config["use_sliding_window"] = false;
  for (const LayerSpec& layer : ReadModelSpec(config).layers) EXPECT_FALSE(layer.attention.window);
}

// Gemma 3 inherits this field from Gemma 2, but its code does not apply it.
TEST(ModelSpec, SoftCapOnAttentionOfGemmaTwoAlone) {
  for (const char* family : {"gemma2", "gemma3_text"}) {
    Json config = ReadJsonFile((TestData("families") / family / "config.json").string());
    config["attn_logit_softcapping"] = 20.0;
    EXPECT_EQ(ReadModelSpec(config).layers[0].attention.softcap,
              std::string_view(family) == "gemma2" ? 20.0 : 0.0);
  }
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

void ExpectSameInBothSpellings(const std::filesystem::path& models, size_t at_least) {
  size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!exists(entry.path() / "config.legacy.json")) continue;
    const auto of = [&](const char* name, const Checkpoint* checkpoint) {
      return Arithmetic(
          ReadModelSpec(ReadJsonFile((entry.path() / name).string()), {.checkpoint = checkpoint}));
    };
    const Checkpoint checkpoint = Checkpoint::Open(entry.path());
    EXPECT_EQ(of("config.json", nullptr), of("config.legacy.json", nullptr)) << entry.path();
    EXPECT_EQ(of("config.json", &checkpoint), of("config.legacy.json", &checkpoint))
        << entry.path();
    ++read;
  }
  EXPECT_GE(read, at_least);
}

TEST(ModelSpec, EveryFamilyReadsTheSameInBothSpellings) {
  ExpectSameInBothSpellings(TestData("families"), 20);
}

TEST(ModelSpec, NoModelTypeIsInTwoLineages) {
  const auto families = Families();
  EXPECT_TRUE(std::ranges::adjacent_find(families, {}, &Family::model_type) == families.end());
}

TEST(ModelSpec, AllPacksReadTheSameInBothSpellings) {
  OSCAR_PACK_OR_SKIP(path, "arch");
  ExpectSameInBothSpellings(path, 24);
}

// These configurations are as published, with all fields that have no effect.
TEST(ModelSpec, ReleasedConfigurationsAreRead) {
  struct Release {
    const char* name;
    size_t layers, uncached;
    int64_t head_dim, num_kv_heads;  // of the last layer with a cache
    bool tied;
    const char* rope;
  };
  const Release releases[] = {
      {"ERNIE-4.5-0.3B", 18, 0, 128, 2, true, "default theta=500000 interleaved"},
      {"EXAONE-4.0-32B", 64, 0, 128, 8, false,
       "llama3 theta=1000000 factor=16 low=1 high=4 original=8192; none"},
      {"GLM-4-9B-0414", 40, 0, 128, 2, false, "default theta=10000 interleaved"},
      {"Gemma-4-E2B", 15, 20, 512, 1, true,
       "default theta=10000; proportional theta=1000000 factor=1 turning=128"},
      {"Ministral-3-8B", 34, 0, 128, 8, false,
       "yarn theta=1000000 factor=16 beta_fast=32 beta_slow=1 original=16384"},
      {"Olmo-3-7B", 32, 0, 128, 32, false,
       "default theta=500000; yarn theta=500000 factor=8 beta_fast=32 beta_slow=1 original=8192 "
       "attention=1.20794"},
      {"Phi-4-mini", 32, 0, 128, 8, true, "longrope theta=10000 original=4096 attention=1.19024"},
      {"Seed-OSS-36B", 64, 0, 128, 8, false, "default theta=10000000"},
      {"SmolLM3-3B", 36, 0, 128, 4, true, "default theta=5000000; none"},
      {"command-r7b", 32, 0, 128, 8, true, "default theta=50000 interleaved; none"},
      {"gemma-2-9b-it", 42, 0, 256, 8, true, "default theta=10000"},
      {"gemma-3-4b-it", 34, 0, 256, 4, true, "default theta=10000; linear theta=1000000 factor=8"},
      {"granite-3.3-8b", 40, 0, 128, 8, true, "default theta=10000000"},
      {"starcoder2-3b", 30, 0, 128, 2, true, "default theta=999999.4420358813"},
  };
  for (const Release& release : releases) {
    const ModelSpec spec = ReadModelSpec(TestData(std::string("configs/") + release.name));
    const AttentionSpec& attention = spec.layers.back().attention;
    EXPECT_EQ(spec.layers.size(), release.layers) << release.name;
    EXPECT_EQ(spec.uncached.size(), release.uncached) << release.name;
    EXPECT_EQ(attention.head_dim, release.head_dim) << release.name;
    EXPECT_EQ(attention.num_kv_heads, release.num_kv_heads) << release.name;
    EXPECT_EQ(spec.tied_head, release.tied) << release.name;
    EXPECT_EQ(spec.rope_description, release.rope) << release.name;
    EXPECT_EQ(spec.fields.unknown, std::vector<std::string>()) << release.name;
  }
}

// transformers pads layer numbers with zeros if there are ten or more layers.
TEST(ModelSpec, NumbersOfLayersMayHaveLeadingZeros) {
  Json config = ReadJsonFile((TestData("families/gemma4_text") / "config.json").string());
  const std::string expected = Arithmetic(ReadModelSpec(config));
  Json& layers = config["per_layer_config"];
  layers["01"] = layers["1"];
  EXPECT_THROW(ReadModelSpec(config), InputError);  // layer 1 is given twice
  layers.erase("1");
  EXPECT_EQ(Arithmetic(ReadModelSpec(config)), expected);
}

TEST(ModelSpec, LayersWithoutACacheStandApart) {
  const ModelSpec spec = ReadModelSpec(TestData("families/gemma4_text-ple"));
  ASSERT_EQ(spec.layers.size(), 2u);
  ASSERT_EQ(spec.uncached.size(), 2u);
  EXPECT_EQ(spec.uncached[0].layer_id, 2);
  EXPECT_EQ(spec.uncached[0].attention.shared_kv, 0);
  EXPECT_EQ(spec.uncached[1].attention.shared_kv, 1);
  const auto ids = [](const std::vector<const LayerSpec*>& layers) {
    std::vector<int> result;
    for (const LayerSpec* layer : layers) result.push_back(layer->layer_id);
    return result;
  };
  EXPECT_EQ(ids(AllLayers(spec)), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(ids(StepLayers(spec, 0)), (std::vector<int>{0}));
  EXPECT_EQ(ids(StepLayers(spec, 1)), (std::vector<int>{1, 2, 3}));
  ModelSpec hybrid;  // linear layers before, between and after
  for (const int id : {2, 5}) hybrid.layers.emplace_back().layer_id = id;
  for (const int id : {0, 1, 3, 4, 6}) hybrid.uncached.emplace_back().layer_id = id;
  EXPECT_EQ(ids(AllLayers(hybrid)), (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ids(StepLayers(hybrid, 0)), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ids(StepLayers(hybrid, 1)), (std::vector<int>{5, 6}));
}

// A config of a kilobyte must not make the reader allocate gigabytes of tensor names.
TEST(ModelSpec, CountsOfNamesAreBounded) {
  const auto refused = [](const char* family, const char* field, int64_t value) -> std::string {
    Json config =
        ReadJsonFile((TestData(std::string("families/") + family) / "config.json").string());
    config.erase("num_local_experts");
    config[field] = value;
    return ErrorOf<InputError>([&] { ReadModelSpec(config); });
  };
  EXPECT_TRUE(Says(refused("qwen3_moe", "num_experts", 100'000), "tensors for all experts"));
  EXPECT_EQ(refused("qwen3_moe", "num_experts", 512), "");
}

// These configurations contain the defaults of the classes of transformers 5.24.
// tests/tools/doctor_test.cc tests the doctor's verdicts on whole releases.
TEST(ModelSpec, ConfigurationsOfTransformersAreRead) {
  OSCAR_PACK_OR_SKIP(path, "public_reports/05-configs-of-transformers-5.24");
  size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const ModelSpec spec = ReadModelSpec(entry.path());
    EXPECT_TRUE(spec.fields.unknown.empty()) << entry.path();
    ++read;
  }
  EXPECT_GE(read, 6u);
}

TEST(ModelSpec, FieldsOfReleasesThatChangeNothing) {
  struct Release {
    const char* family;
    Json fields;  // accepted
    Json others;  // each refused on its own
  };
  const Release releases[] = {
      {"qwen3_moe",
       {{"use_qk_norm", true}, {"qkv_bias", false}, {"shared_expert_intermediate_size", 0}},
       {{"use_qk_norm", false}, {"qkv_bias", true}, {"shared_expert_intermediate_size", 512}}},
      {"qwen3_5_text",
       {{"output_gate_type", "swish"}, {"language_model_only", false}},
       {{"output_gate_type", "sigmoid"}}},
      {"glm_moe_dsa",
       {{"index_share_for_mtp_iteration", true},
        {"moe_router_dtype", "float32"},
        {"layer_types", Json::array()}},
       {{"moe_router_dtype", "bfloat16"}, {"layer_types", {"sliding_attention"}}}},
      {"deepseek_v3", {{"media_placeholder_token_id", 7}, {"audio_token_index", 8}}, {}},
      {"llama4_text", {{"nope_layer_interval", 3}}, {{"nope_layer_interval", 4}}},
      {"mellum",
       {{"mtp_layer_types", nullptr}, {"num_nextn_predict_layers", nullptr}, {"intermediate", {}}},
       {}},
      {"minimax_m3",
       {{"attention_output_gate", false}, {"num_mtp_modules", 7}, {"n_shared_experts", 1}},
       {{"attention_output_gate", true}, {"n_shared_experts", 2}}},
  };
  for (const Release& release : releases) {
    const Json config =
        ReadJsonFile((TestData("families") / std::string(release.family) / "config.json").string());
    Json accepted = config;
    Json& text = accepted.contains("text_config") ? accepted["text_config"] : accepted;
    text.update(release.fields);
    const ModelSpec spec = ReadModelSpec(accepted);
    EXPECT_TRUE(spec.fields.unknown.empty())
        << release.family << " " << spec.fields.unknown.front();
    for (const auto& [key, value] : release.others.items()) {
      Json refused = config;
      (refused.contains("text_config") ? refused["text_config"] : refused)[key] = value;
      EXPECT_THROW(ReadModelSpec(refused), InputError) << release.family << " " << key;
    }
  }
}

// transformers 5.24 writes the defaults of its class this way, and rotates whole heads.
TEST(ModelSpec, ARotaryDimBesideRopeParametersTurnsWholeHeads) {
  Json config = ReadJsonFile((TestData("families") / "minimax_m3" / "config.json").string());
  Json& text = config.contains("text_config") ? config["text_config"] : config;
  text["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  text["rotary_dim"] = 2;
  const AttentionSpec attention = ReadModelSpec(config).layers.front().attention;
  EXPECT_EQ(attention.rope.rotary_dim, attention.head_dim);
}

// In transformers 5.24, gpt_oss has these fields.
TEST(ModelSpec, TheClampedGateIsThatOfTheConfiguration) {
  Json config = ReadJsonFile((TestData("families") / "gpt_oss" / "config.json").string());
  config["swiglu_alpha"] = 1.2;
  config["swiglu_limit"] = 1.5;
  const auto gate = ReadModelSpec(config).layers.front().experts->clamped_gate;
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate->alpha, 1.2);
  EXPECT_EQ(gate->limit, 1.5);
}

// LLaVA 1.5 writes only the fields of its text part that differ from LlamaConfig's defaults.
TEST(ModelSpec, ATextConfigMayLeaveOutTheDefaultsOfItsClass) {
  const Json text = {{"model_type", "llama"},
                     {"max_position_embeddings", 4096},
                     {"rms_norm_eps", 1e-5},
                     {"vocab_size", 32064}};
  const Json config = {{"architectures", {"LlavaForConditionalGeneration"}},
                       {"model_type", "llava"},
                       {"text_config", text},
                       {"vision_config", {{"hidden_size", 1024}}}};
  const ModelSpec spec = ReadModelSpec(config);
  EXPECT_EQ(spec.hidden_size, 4096);
  EXPECT_EQ(spec.layers.size(), 32u);
  EXPECT_EQ(spec.layers[0].mlp.intermediate_size, 11008);
  EXPECT_EQ(spec.layers[0].attention.num_kv_heads, 32);
  EXPECT_EQ(spec.layers[0].attention.rope.theta, 10000.0);
  EXPECT_EQ(spec.rms_norm_eps, 1e-5);
  Json experts = config;  // another name for num_experts
  experts["text_config"] = {{"model_type", "qwen3_moe"}, {"num_local_experts", 16}};
  EXPECT_EQ(ReadModelSpec(experts).layers[0].experts->num_experts, 16);
  EXPECT_THROW(ReadModelSpec(text), InputError);  // alone, the text config lacks its sizes
}

}  // namespace
}  // namespace oscar
