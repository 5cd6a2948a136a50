// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that models which are not implemented are refused by name before any weight is read. A
// model with wrong arithmetic would be calibrated without an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "capture/model/spec/model_spec.h"
#include "linalg/base/error.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

const SpecOptions kRefuse = {.unknown_config = UnknownConfig::kRefuse},
                  kIgnore = {.unknown_config = UnknownConfig::kIgnore};

Json Base() { return SyntheticConfig(2, 64, 96, 4, 2, 32, 100); }

// Returns the message of the InputError, or "" if the configuration is accepted.
std::string Refusal(const Json& config, const SpecOptions& options = {}) {
  return ErrorOf<InputError>([&] { ReadModelSpec(config, options); });
}

TEST(Refusal, TheBaseIsAccepted) { EXPECT_EQ(Refusal(Base()), ""); }

TEST(Refusal, NamesTheFieldThatChangesTheMathematics) {
  const Json cases = Json::parse(R"([
      ["model_type", "mamba2"], ["architectures", ["Qwen3Model"]],
      ["architectures", ["Qwen3ForSequenceClassification"]], ["hidden_act", "relu6"],
      ["hidden_activation", "gelu_pytorch_tanh"], ["quantization_config", {"quant_method": "hqq"}],
      ["compression_config", {"format": "pack-quantized"}], ["partial_rotary_factor", 0.5],
      ["rope_interleaved", true], ["attn_logit_softcapping", 50.0], ["query_pre_attn_scalar", 256],
      ["final_logit_softcapping", 30.0], ["logits_scaling", 8.0], ["embedding_multiplier", 12.0],
      ["num_experts", 8], ["kv_lora_rank", 512], ["text_config", {"hidden_size": 64}],
      ["auto_map", {"AutoModel": "modeling.py"}], ["is_causal", false], ["mlp_bias", true],
      ["use_bidirectional_attention", true], ["attn_output_gate", true],
      ["layer_types", ["full_attention", "linear_attention"]], ["layer_types", ["full_attention"]],
      ["layer_types", ["full_attention", "sliding_attention"]], ["torch_dtype", "float8_e4m3fn"],
      ["pruned_heads", {"0": [1]}]])");
  for (const Json& row : cases) {
    const auto key = row[0].get<std::string>();
    Json config = Base();
    config[key] = row[1];
    EXPECT_TRUE(Says(Refusal(config), key));
    EXPECT_TRUE(Says(Refusal(config, kIgnore), key));
  }
}

TEST(Refusal, ClassNamesMayDifferInCapitals) {
  Json config = Base();
  config["architectures"] = {"QWEN3ForCausalLM"};
  config["auto_map"] = {{"AutoModelForCausalLM", "modeling_qwen3.QWen3ForCausalLM"}};
  EXPECT_EQ(Refusal(config), "");
  config["architectures"] = {"Qwen2ForCausalLM"};
  EXPECT_TRUE(Says(Refusal(config), "architectures"));
}

TEST(Refusal, SaysWhyAKnownFamilyIsRefused) {
  Json config = Base();
  config["model_type"] = "nemotron_h";
  EXPECT_TRUE(Says(Refusal(config), "state-space layers (Mamba)"));
}

TEST(Refusal, ListsWhatIsSupported) {
  Json config = Base();
  config["model_type"] = "mamba";
  EXPECT_TRUE(
      Says(Refusal(config), "kimi_k2, kimi_k25, laguna, llama, llama4, llama4_text, llava"));
  config = Base();
  config["rope_scaling"] = {{"type", "spiral"}, {"factor", 4.0}};
  EXPECT_TRUE(Says(Refusal(config), "spiral"));
  EXPECT_TRUE(Says(Refusal(config), "default, linear, dynamic, llama3, yarn"));
}

TEST(Refusal, NamesTheRotaryEmbedding) {
  for (const char* type : {"spiral", "mrope", "proportional", "axial"}) {
    Json old_spelling = Base(), new_spelling = Base();
    old_spelling["rope_scaling"] = {{"rope_type", type}, {"factor", 4.0}};
    EXPECT_TRUE(Says(Refusal(old_spelling), std::string("'") + type + "'"));
    new_spelling.erase("rope_theta");
    new_spelling["rope_parameters"] = {{"rope_type", type}, {"rope_theta", 1e4}, {"factor", 4.0}};
    EXPECT_TRUE(Says(Refusal(new_spelling), std::string("'") + type + "'"));
  }
}

TEST(Refusal, JudgesEverySettingOfTheRotaryEmbedding) {
  const Json cases = Json::parse(R"([
      ["partial_rotary_factor", {"rope_type": "default", "partial_rotary_factor": 0.5}],
      ["mrope_section", {"rope_type": "default", "mrope_section": [16, 24, 24]}],
      ["factor", {"rope_type": "linear"}], ["factor", {"rope_type": "linear", "factor": 0.5}],
      ["factor", {"rope_type": "linear", "factor": "4"}],
      ["low_freq_factor", {"rope_type": "llama3", "factor": 8.0}],
      ["high_freq_factor", {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0,
                            "high_freq_factor": 3.5, "original_max_position_embeddings": 8192}],
      ["factor", {"rope_type": "yarn"}],
      ["beta_fast", {"rope_type": "yarn", "factor": 4.0, "beta_fast": 0.5}],
      ["llama_4_scaling_beta", {"rope_type": "yarn", "factor": 4.0, "llama_4_scaling_beta": 0.1}],
      ["attention_factor", {"rope_type": "yarn", "factor": 4.0, "mscale": 1e308,
                            "mscale_all_dim": 1.0}],
      ["attention_factor", {"rope_type": "yarn", "factor": 4.0, "mscale": -100.0,
                            "mscale_all_dim": 1.0}],
      ["mscale_all_dim", {"rope_type": "yarn", "factor": 4.0, "mscale_all_dim": 1e200}],
      ["factor", {"rope_type": "dynamic"}], ["short_factor", {"rope_type": "longrope"}],
      ["beta_fast", {"rope_type": "default", "beta_fast": 32.0}],
      ["rope_theta", {"rope_type": "default", "rope_theta": null}],
      ["rope_theta", {"rope_type": "default", "rope_theta": -1.0}],
      ["full_attention", {"full_attention": {"rope_type": "default", "rope_theta": 1e4},
                          "rope_theta": null}],
      ["type", {"rope_type": "default", "type": "linear"}]])");
  const auto refuse = [](const std::string& key, Json rope) {
    if (!rope.contains("rope_theta")) rope["rope_theta"] = 1e4;
    if (rope["rope_theta"].is_null()) rope.erase("rope_theta");
    Json config = Base();
    config.erase("rope_theta");
    config["rope_parameters"] = rope;
    EXPECT_TRUE(Says(Refusal(config), key));
  };
  for (const Json& row : cases) refuse(row[0], row[1]);
  Json longrope = {{"rope_type", "longrope"}, {"short_factor", Json(16, 1.0)}};
  longrope["long_factor"] = Json(15, 1.0);
  refuse("long_factor", longrope);
  longrope["rope_type"] = "su";
  longrope["long_factor"] = Json(16, -1.0);
  refuse("long_factor", longrope);
}

TEST(Refusal, TwoSpellingsThatContradictEachOther) {
  Json config = Base();
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  EXPECT_TRUE(Says(Refusal(config), "rope_theta"));
  config["rope_theta"] = 5e5;
  EXPECT_EQ(Refusal(config), "");
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  EXPECT_TRUE(Says(Refusal(config), "rope_scaling"));
  config = Base();
  config["dtype"] = "float32";
  EXPECT_TRUE(Says(Refusal(config), "torch_dtype"));
}

TEST(Refusal, AnUnknownFieldNamesTheNearestKnownOne) {
  Json config = Base();
  config["head_dims"] = 32;
  EXPECT_TRUE(Says(Refusal(config, kRefuse), "head_dims"));
  EXPECT_TRUE(Says(Refusal(config, kRefuse), "'head_dim'"));
  for (const SpecOptions& options : {SpecOptions(), kIgnore}) {
    EXPECT_EQ(Refusal(config, options), "");
    EXPECT_EQ(ReadModelSpec(config, options).fields.unknown, std::vector<std::string>{"head_dims"});
  }
}

// The loss on a text reveals a wrong forward pass, but not a slightly wrong one.
TEST(Refusal, AnUnknownFieldThatSpeaksOfTheMathematicsIsRefusedUnlessIgnored) {
  for (const char* key : {"rope_twist", "curious_norm", "branch_scale", "softcap_of_values",
                          "far_window", "swiglu_alpha", "clampLimit", "attn_gate", "k_bias"}) {
    Json config = Base();
    config[key] = 3;
    EXPECT_TRUE(Says(Refusal(config), key));
    EXPECT_EQ(Refusal(config, kIgnore), "") << key;
  }
}

TEST(Refusal, EmptyMembersAreIgnoredAndFalseAndZeroAreNot) {
  for (const Json& empty : {Json(nullptr), Json(""), Json::array(), Json::object()}) {
    for (const char* key : {"curious_norm", "rope_scaling", "num_experts", "layer_types",
                            "text_config", "quantization_config", "architectures", "head_dim"}) {
      Json config = Base();
      config[key] = empty;
      EXPECT_EQ(Refusal(config, kRefuse), "") << key << empty;
      EXPECT_TRUE(ReadModelSpec(config).fields.unknown.empty()) << key;
    }
    Json config = Base();
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"curious", empty}};
    EXPECT_EQ(Refusal(config, kRefuse), "") << empty;
  }
  for (const Json& value : {Json(false), Json(0)}) {
    Json config = Base();
    config["curious_norm"] = value;
    EXPECT_TRUE(Says(Refusal(config), "curious_norm"));
  }
}

// transformers keeps this field for other code and never reads it, but does not document that.
TEST(Refusal, AFieldThatTheReferenceNeverReadsIsNoted) {
  Json config = ReadJsonFile((TestData("families") / "glm_moe_dsa" / "config.json").string());
  config["mlp_bias"] = true;
  EXPECT_EQ(Refusal(config, kRefuse), "");
  EXPECT_EQ(ReadModelSpec(config).fields.unread, std::vector<std::string>{"mlp_bias"});
}

TEST(Refusal, NeutralAndIrrelevantFieldsPass) {
  Json config = Base();
  config["partial_rotary_factor"] = 1;
  config["num_experts"] = 0;
  config["attn_logit_softcapping"] = nullptr;
  config["initializer_range"] = 0.02;
  config["transformers_version"] = "5.17.0";
  config["use_cache"] = true;
  config["sliding_window"] = 4096;
  config["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(Refusal(config), "");
}

TEST(Refusal, NonsenseNamesItsField) {
  const Json cases = Json::parse(R"([
      ["hidden_size", 0], ["hidden_size", -64], ["hidden_size", 64.0], ["hidden_size", "64"],
      ["hidden_size", null], ["hidden_size", 1099511627776], ["hidden_size", 18446744073709551615],
      ["num_hidden_layers", 0], ["num_hidden_layers", 1000000], ["num_attention_heads", 0],
      ["num_key_value_heads", 3], ["num_key_value_heads", 8], ["head_dim", 33], ["head_dim", 0],
      ["intermediate_size", -1], ["vocab_size", 0], ["max_position_embeddings", 0],
      ["rms_norm_eps", 0.0], ["rms_norm_eps", -1e-6], ["rms_norm_eps", 2.0],
      ["rms_norm_eps", "1e-6"], ["model_type", 7], ["rope_theta", 0], ["rope_theta", true],
      ["tie_word_embeddings", "true"], ["hidden_act", 1], ["rope_scaling", "linear"],
      ["layer_types", "full_attention"], ["architectures", "Qwen3ForCausalLM"]])");
  for (const Json& row : cases) {
    const auto key = row[0].get<std::string>();
    Json config = Base();
    config[key] = row[1];
    EXPECT_TRUE(Says(Refusal(config), key));
  }
  for (const char* key : {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size", "max_position_embeddings",
                          "rms_norm_eps", "rope_theta"}) {
    Json config = Base();
    config.erase(key);
    EXPECT_TRUE(Says(Refusal(config), key));
  }
  EXPECT_TRUE(Says(Refusal(Json::array()), "object"));
}

TEST(Refusal, EveryFamilyRefusesAFieldItDoesNotKnow) {
  for (const auto& entry : std::filesystem::directory_iterator(TestData("families"))) {
    if (!entry.is_directory()) continue;
    Json config = ReadJsonFile((entry.path() / "config.json").string());
    EXPECT_EQ(Refusal(config), "") << entry.path();
    config["curious_attention"] = true;
    EXPECT_TRUE(Says(Refusal(config, kRefuse), "curious_attention"));
    EXPECT_EQ(Refusal(config), "") << entry.path();
    config.erase("curious_attention");
    Json& outer = config.contains("thinker_config") ? config["thinker_config"] : config;
    Json& text = outer.contains("text_config") ? outer["text_config"] : outer;
    Json& rope = text["rope_parameters"];
    (rope.contains("full_attention") ? rope["full_attention"] : rope)["curious_angle"] = 1;
    EXPECT_TRUE(Says(Refusal(config), "curious_angle"));
    EXPECT_EQ(Refusal(config, kIgnore), "") << entry.path();
  }
}

// transformers' configuration classes have defaults for these fields, and no tensor reveals the
// value.
TEST(Refusal, MissingFieldsThatAreNotNeutral) {
  for (const char* family : {"gpt_oss", "mistral4", "laguna", "gemma4_text"}) {
    Json config = ReadJsonFile((TestData("families") / family / "config.json").string());
    config.erase("rope_parameters");
    EXPECT_TRUE(Says(Refusal(config), "rope_parameters is missing"));
  }
  Json config = ReadJsonFile((TestData("families") / "deepseek_v3" / "config.json").string());
  config.erase("routed_scaling_factor");
  EXPECT_EQ(ReadModelSpec(config).layers.back().experts->router.scale, 2.5);
  config.erase("topk_group");
  EXPECT_TRUE(Says(Refusal(config), "topk_group is missing"));
}

// In these families transformers stores layer_types but never reads it: either all layers have a
// sliding window or none has.
TEST(Refusal, LayerTypesThatNobodyReads) {
  Json config = ReadJsonFile((TestData("families") / "mixtral" / "config.json").string());
  const auto layers = config.at("num_hidden_layers").get<size_t>();
  config["layer_types"] = std::vector<std::string>(layers, "sliding_attention");
  config["sliding_window"] = 7;
  EXPECT_EQ(Refusal(config), "");
  config["layer_types"][0] = "full_attention";
  EXPECT_TRUE(Says(Refusal(config), "layer_types has full_attention, but transformers ignores"));
  config["layer_types"] = std::vector<std::string>(layers, "full_attention");
  EXPECT_TRUE(Says(Refusal(config), "layer_types"));
  config["sliding_window"] = nullptr;
  EXPECT_EQ(Refusal(config), "");
}

TEST(Refusal, WrappersAreReadStrictly) {
  Json text = Base();
  text["model_type"] = "mistral";
  text.erase("architectures");
  for (const char* key : {"attention_bias", "use_sliding_window", "max_window_layers"})
    text.erase(key);
  const Json good = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                     {"model_type", "mistral3"},
                     {"text_config", text},
                     {"vision_config", {{"hidden_size", 3}}},
                     {"projector_hidden_act", "gelu"}};
  EXPECT_EQ(Refusal(good), "");
  const auto changed = [&](const char* pointer, const Json& value) {
    Json config = good;
    config[Json::json_pointer(pointer)] = value;
    return Refusal(config, kRefuse);
  };
  EXPECT_TRUE(Says(changed("/text_config", 3), "text_config"));
  EXPECT_TRUE(Says(changed("/architectures/0", "MistralForCausalLM"), "architectures"));
  EXPECT_TRUE(Says(changed("/text_config/curious", 3), "text_config: curious"));
  EXPECT_TRUE(Says(changed("/curious", 3), "curious"));
  EXPECT_EQ(changed("/hidden_size", text["hidden_size"]), "");  // the same value
  EXPECT_TRUE(Says(changed("/hidden_size", 48), "hidden_size"));
  EXPECT_TRUE(Says(changed("/text_config/model_type", "mamba"), "model_type"));
}

}  // namespace
}  // namespace oscar
