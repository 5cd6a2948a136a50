// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What is not implemented is refused by name, before any weight is read: a model computed wrong
// would calibrate without a complaint.
#include <gtest/gtest.h>

#include "capture/model/model_spec.h"
#include "linalg/error.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

Json Base() { return SyntheticConfig(2, 64, 96, 4, 2, 32, 100); }

// The message of the InputError, or "" if the configuration is accepted.
std::string Refusal(const Json& config, const SpecOptions& options = {}) {
  try {
    ReadModelSpec(config, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void ExpectMentions(const std::string& message, std::string_view text) {
  EXPECT_NE(message.find(text), std::string::npos) << "'" << text << "' is not in: " << message;
}

TEST(Refusal, TheBaseIsAccepted) { EXPECT_EQ(Refusal(Base()), ""); }

TEST(Refusal, NamesTheFieldThatChangesTheMathematics) {
  const std::pair<const char*, Json> cases[] = {
      {"model_type", "gemma2"},
      {"architectures", {"Qwen3Model"}},
      {"architectures", {"Qwen3ForSequenceClassification"}},
      {"hidden_act", "gelu"},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"quantization_config", {{"quant_method", "fp8"}}},
      {"compression_config", {{"format", "pack-quantized"}}},
      {"partial_rotary_factor", 0.5},
      {"rope_interleaved", true},
      {"attn_logit_softcapping", 50.0},
      {"final_logit_softcapping", 30.0},
      {"query_pre_attn_scalar", 256},
      {"logits_scaling", 8.0},
      {"embedding_multiplier", 12.0},
      {"num_experts", 8},
      {"kv_lora_rank", 512},
      {"text_config", {{"hidden_size", 64}}},
      {"auto_map", {{"AutoModel", "modeling.py"}}},
      {"is_causal", false},
      {"use_bidirectional_attention", true},
      {"attn_output_gate", true},
      {"layer_types", {"full_attention", "linear_attention"}},
      {"layer_types", {"full_attention"}},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"use_sliding_window", true},
      {"torch_dtype", "float8_e4m3fn"},
      {"mlp_bias", true},
      {"pruned_heads", {{"0", {1}}}},
  };
  for (const auto& [key, value] : cases) {
    Json config = Base();
    config[key] = value;
    ExpectMentions(Refusal(config), key);
    ExpectMentions(Refusal(config, {.allow_unknown_config = true}), key);
  }
}

TEST(Refusal, ListsWhatIsSupported) {
  Json config = Base();
  config["model_type"] = "mamba";
  ExpectMentions(Refusal(config), "llama, mistral, qwen2, qwen3");
  config = Base();
  config["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
  ExpectMentions(Refusal(config), "yarn");
  ExpectMentions(Refusal(config), "default, linear, llama3");
}

TEST(Refusal, NamesTheRotaryEmbedding) {
  for (const char* type : {"yarn", "dynamic", "longrope", "su", "mrope", "proportional"}) {
    Json old_spelling = Base(), new_spelling = Base();
    old_spelling["rope_scaling"] = {{"rope_type", type}, {"factor", 4.0}};
    ExpectMentions(Refusal(old_spelling), std::string("'") + type + "'");
    new_spelling.erase("rope_theta");
    new_spelling["rope_parameters"] = {{"rope_type", type}, {"rope_theta", 1e4}, {"factor", 4.0}};
    ExpectMentions(Refusal(new_spelling), std::string("'") + type + "'");
  }
}

TEST(Refusal, JudgesEverySettingOfTheRotaryEmbedding) {
  const std::pair<const char*, Json> cases[] = {
      {"partial_rotary_factor",
       {{"rope_type", "default"}, {"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}}},
      {"mrope_section",
       {{"rope_type", "default"}, {"rope_theta", 1e4}, {"mrope_section", {16, 24, 24}}}},
      {"factor", {{"rope_type", "linear"}, {"rope_theta", 1e4}}},
      {"factor", {{"rope_type", "linear"}, {"rope_theta", 1e4}, {"factor", 0.5}}},
      {"factor", {{"rope_type", "linear"}, {"rope_theta", 1e4}, {"factor", "4"}}},
      {"low_freq_factor", {{"rope_type", "llama3"}, {"rope_theta", 1e4}, {"factor", 8.0}}},
      {"high_freq_factor",
       {{"rope_type", "llama3"},
        {"rope_theta", 1e4},
        {"factor", 8.0},
        {"low_freq_factor", 4.0},
        {"high_freq_factor", 4.0},
        {"original_max_position_embeddings", 8192}}},
      {"rope_theta", {{"rope_type", "default"}}},
      {"rope_theta", {{"rope_type", "default"}, {"rope_theta", -1.0}}},
      {"full_attention", {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}},
      {"type", {{"rope_type", "default"}, {"type", "linear"}, {"rope_theta", 1e4}}},
  };
  for (const auto& [key, rope] : cases) {
    Json config = Base();
    config.erase("rope_theta");
    config["rope_parameters"] = rope;
    ExpectMentions(Refusal(config), key);
  }
}

TEST(Refusal, TwoSpellingsThatContradictEachOther) {
  Json config = Base();
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  ExpectMentions(Refusal(config), "rope_theta");
  config["rope_theta"] = 5e5;
  EXPECT_EQ(Refusal(config), "");
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  ExpectMentions(Refusal(config), "rope_scaling");
  config = Base();
  config["dtype"] = "float32";
  ExpectMentions(Refusal(config), "torch_dtype");
}

TEST(Refusal, AnUnknownFieldNamesTheNearestKnownOne) {
  Json config = Base();
  config["head_dims"] = 32;
  ExpectMentions(Refusal(config), "head_dims");
  ExpectMentions(Refusal(config), "'head_dim'");
  EXPECT_EQ(Refusal(config, {.allow_unknown_config = true}), "");
  EXPECT_EQ(ReadModelSpec(config, {.allow_unknown_config = true}).ignored_config,
            std::vector<std::string>{"head_dims"});
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
  const std::pair<const char*, Json> cases[] = {
      {"hidden_size", 0},
      {"hidden_size", -64},
      {"hidden_size", 64.0},
      {"hidden_size", "64"},
      {"hidden_size", nullptr},
      {"hidden_size", int64_t{1} << 40},
      {"hidden_size", UINT64_MAX},
      {"num_hidden_layers", 0},
      {"num_hidden_layers", 1000000},
      {"num_attention_heads", 0},
      {"num_key_value_heads", 3},
      {"num_key_value_heads", 8},
      {"head_dim", 33},
      {"head_dim", 0},
      {"intermediate_size", -1},
      {"vocab_size", 0},
      {"max_position_embeddings", 0},
      {"rms_norm_eps", 0.0},
      {"rms_norm_eps", -1e-6},
      {"rms_norm_eps", 2.0},
      {"rms_norm_eps", "1e-6"},
      {"rope_theta", 0},
      {"rope_theta", true},
      {"tie_word_embeddings", "true"},
      {"hidden_act", 1},
      {"model_type", 7},
      {"rope_scaling", "linear"},
      {"layer_types", "full_attention"},
      {"architectures", "Qwen3ForCausalLM"},
  };
  for (const auto& [key, value] : cases) {
    Json config = Base();
    config[key] = value;
    ExpectMentions(Refusal(config), key);
  }
  for (const char* key : {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size", "max_position_embeddings",
                          "rms_norm_eps", "rope_theta"}) {
    Json config = Base();
    config.erase(key);
    ExpectMentions(Refusal(config), key);
  }
  ExpectMentions(Refusal(Json::array()), "object");
}

// Whatever a field holds, the answer is a spec or an InputError.
TEST(Refusal, AnyValueAnywhereIsAnswered) {
  const Json values[] = {nullptr,
                         true,
                         -1,
                         0,
                         1,
                         2.5,
                         1e300,
                         -0.0,
                         UINT64_MAX,
                         INT64_MIN,
                         "",
                         "x",
                         Json::array(),
                         Json::object(),
                         {{"rope_type", 3}},
                         {1, "a", nullptr}};
  for (const char* model : {"tiny-qwen3/config.json", "arch/qwen2-swa/config.json",
                            "arch/llama/config.json", "arch/llama/config.legacy.json"}) {
    const Json original = ReadJsonFile(TestData(model).string());
    for (const auto& [key, unused] : original.items()) {
      for (const Json& value : values) {
        Json config = original;
        config[key] = value;
        EXPECT_NO_FATAL_FAILURE(Refusal(config)) << key;
      }
    }
  }
}

TEST(Refusal, EveryOtherPackIsRefusedByName) {
  OSCAR_PACK_OR_SKIP(path, "arch");
  const std::set<std::string> supported = {"qwen2",           "qwen2-swa", "qwen3",      "llama",
                                           "llama-bias-tied", "mistral",   "mistral-swa"};
  size_t refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string pack = entry.path().filename().string();
    if (!entry.is_directory() || supported.contains(pack)) continue;
    for (const char* name : {"config.json", "config.legacy.json"}) {
      const Json config = ReadJsonFile((entry.path() / name).string());
      const std::string message = Refusal(config, {.allow_unknown_config = true});
      ExpectMentions(message,
                     pack == "llama-yarn" ? "'yarn'" : config["model_type"].get<std::string>());
      ExpectMentions(message, "Supported: ");
      ++refused;
    }
  }
  EXPECT_GT(refused, 30u);
}

}  // namespace
}  // namespace oscar
