// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every family of tests/data/families against transformers 5, in both spellings of its
// configuration, and what happens when one field is wrong: the values move, or the loader refuses.
// Trap: a mutation that changes nothing means that nobody reads the field.
#include "capture/model/families/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "linalg/error.h"
#include "tests/capture/model/golden.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Folders() {
  std::vector<fs::path> families;
  for (const auto& entry : fs::directory_iterator(TestData("families"))) {
    if (entry.is_directory()) families.push_back(entry.path());
  }
  std::ranges::sort(families);
  return families;
}

TEST(Families, AgreeWithTransformersInBothSpellings) {
  size_t runs = 0;
  for (const fs::path& family : Folders()) {
    for (const std::string config : {"config.json", "config.legacy.json"}) {
      for (const std::string golden : {"golden.safetensors", "golden_short.safetensors"}) {
        if (!exists(family / config) || !exists(family / golden)) continue;
        const std::string name = family.filename().string() + " " + config + " " + golden;
        try {
          const GoldenErrors errors =
              CompareWithGolden(family, {config, golden, at::kCPU, at::kFloat, {}, nullptr});
          EXPECT_GE(errors.of.size(), 4u + 1) << name;
          EXPECT_LT(errors.worst, 2e-5) << name << " " << errors.worst_name;
          std::cout << "[   f32    ] " << name << ": worst " << errors.worst << " ("
                    << errors.worst_name << ")\n";
          ++runs;
        } catch (const InputError& error) {
          ADD_FAILURE() << name << ": " << error.what();
        }
      }
    }
  }
  EXPECT_GE(runs, 40u);
}

// Tokens in small steps, attention in chunks, sequences side by side.
TEST(Families, ChunksOfTokensDoNotChangeValues) {
  for (const fs::path& family : Folders()) {
    GoldenRun run;
    run.options.token_chunk = 7;
    run.options.query_chunk = 5;
    run.options.whole_attention = 1;
    run.options.expert_bytes = 1;  // one expert at a time
    run.copies = 2;
    const GoldenErrors errors = CompareWithGolden(family, run);
    EXPECT_LT(errors.worst, 2e-5) << family << " " << errors.worst_name;
  }
}

struct Mutation {
  const char* family;
  const char* field;  // JSON pointer in config.json
  Json value;
};

const std::vector<Mutation>& Mutations() {
  static const std::vector<Mutation> mutations = {
      {"mistral", "/sliding_window", nullptr},
      {"mistral", "/num_key_value_heads", 1},
      {"mistral", "/rope_parameters/rope_theta", 6000.0},
      {"qwen2", "/use_sliding_window", false},
      {"qwen2", "/layer_types", {"sliding_attention", "sliding_attention", "full_attention"}},
      {"qwen2", "/rms_norm_eps", 1e-2},
      {"qwen3", "/attention_bias", false},
      {"qwen3", "/rope_parameters/rope_theta", 6000.0},
      {"qwen3", "/head_dim", 8},
      {"qwen3", "/tie_word_embeddings", false},
      {"llama-linear", "/rope_parameters/factor", 4.5},
      {"llama-linear", "/rope_parameters/rope_theta", 6000.0},
      {"llama-linear", "/rope_parameters/rope_type", "dynamic"},
      {"llama-linear", "/mlp_bias", false},
      {"llama-linear", "/rms_norm_eps", 1e-2},
      {"llama-linear", "/num_key_value_heads", 1},
      {"llama-dynamic", "/rope_parameters/factor", 3.0},
      {"llama-dynamic", "/max_position_embeddings", 30},
      {"llama-longrope", "/rope_parameters/long_factor", {1.0, 4.0, 3.0, 5.0}},
      {"llama-longrope", "/rope_parameters/original_max_position_embeddings", 64},
      {"llama-yarn", "/rope_parameters/truncate", true},
      {"llama-yarn", "/rope_parameters/beta_fast", 3.0},
      {"llama-yarn", "/rope_parameters/factor", 4.0},
      {"llama-yarn", "/rope_parameters/attention_factor", 1.0},
      {"llama-yarn", "/attention_bias", false},
      {"ministral3", "/rope_parameters/llama_4_scaling_beta", 0.1},
      {"ministral3", "/rope_parameters/mscale", 0.5},
      {"ministral3", "/rope_parameters/original_max_position_embeddings", 32},
      {"phi3", "/rope_parameters/partial_rotary_factor", 1.0},
      {"phi3", "/rope_parameters/long_factor", {1.0, 4.0, 4.0, 8.0}},
      {"phi3", "/sliding_window", 21},
      {"smollm3", "/no_rope_layers", {1, 1, 1}},
      {"smollm3", "/use_sliding_window", false},
      {"smollm3", "/sliding_window", 11},
      {"gemma2", "/attn_logit_softcapping", nullptr},
      {"gemma2", "/final_logit_softcapping", 3.0},
      {"gemma2", "/query_pre_attn_scalar", 16},
      {"gemma2", "/sliding_window", 11},
      {"gemma2", "/layer_types", {"full_attention", "full_attention", "sliding_attention"}},
      {"gemma2", "/hidden_activation", "silu"},
      {"gemma2", "/model_type", "gemma3_text"},
      {"gemma3_text", "/rope_parameters/full_attention/factor", 2.0},
      {"gemma3_text", "/rope_parameters/sliding_attention/rope_theta", 2000.0},
      {"gemma3_text", "/query_pre_attn_scalar", 16},
      {"gemma3_text", "/layer_types", {"sliding_attention", "full_attention", "full_attention"}},
      {"gemma4_text", "/attention_k_eq_v", false},
      {"gemma4_text", "/enable_moe_block", false},
      {"gemma4_text", "/top_k_experts", 1},
      {"gemma4_text", "/rope_parameters/full_attention/partial_rotary_factor", 0.5},
      {"gemma4_text", "/rope_parameters/sliding_attention/rope_theta", 2000.0},
      {"gemma4_text", "/per_layer_config/1/num_key_value_heads", 2},
      {"gemma4_text", "/final_logit_softcapping", nullptr},
      {"gemma4_text-ple", "/num_kv_shared_layers", 1},
      {"gemma4_text-ple", "/use_double_wide_mlp", false},
      {"gemma4_text-ple", "/hidden_size_per_layer_input", 0},
      {"gemma4_text-ple", "/sliding_window", 11},
      {"glm4", "/rope_parameters/partial_rotary_factor", 1.0},
      {"glm4", "/attention_bias", false},
      {"olmo2", "/rope_parameters/rope_theta", 6000.0},
      {"olmo2", "/model_type", "llama"},
      {"olmo3", "/rope_parameters/full_attention/factor", 4.0},
      {"olmo3", "/rope_parameters/sliding_attention/rope_theta", 6000.0},
      {"olmo3", "/sliding_window", 11},
      {"granite", "/embedding_multiplier", 2.0},
      {"granite", "/attention_multiplier", 0.3},
      {"granite", "/residual_multiplier", 1.0},
      {"granite", "/logits_scaling", 1.0},
      {"seed_oss", "/attention_out_bias", false},
      {"seed_oss", "/rope_parameters/rope_theta", 6000.0},
      {"exaone4", "/sliding_window", 11},
      {"exaone4",
       "/layer_types",
       {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}},
      {"exaone4-full", "/sliding_window", 10},
      {"cohere2", "/logit_scale", 0.5},
      {"cohere2", "/sliding_window", 11},
      {"cohere2", "/layer_norm_eps", 1e-2},
      {"starcoder2", "/norm_epsilon", 1e-2},
      {"starcoder2", "/sliding_window", 11},
      {"starcoder2", "/hidden_act", "silu"},
      {"starcoder2", "/use_bias", false},
      {"mixtral", "/num_experts_per_tok", 1},
      {"mixtral", "/sliding_window", 10},
      {"mixtral", "/model_type", "mistral"},
      {"qwen2_moe", "/norm_topk_prob", true},
      {"qwen2_moe", "/decoder_sparse_step", 1},
      {"qwen2_moe", "/shared_expert_intermediate_size", 16},
      {"qwen2_moe", "/qkv_bias", false},
      {"qwen3_moe", "/norm_topk_prob", false},
      {"qwen3_moe", "/num_experts_per_tok", 1},
      {"qwen3_moe", "/mlp_only_layers", Json::array()},
      {"qwen3_moe", "/head_dim", 16},
      {"qwen3_next", "/norm_topk_prob", false},
      {"qwen3_next", "/rope_parameters/partial_rotary_factor", 0.5},
      {"qwen3_next",
       "/layer_types",
       {"full_attention", "linear_attention", "linear_attention", "full_attention"}},
      {"qwen3_next", "/linear_conv_kernel_dim", 3},
      {"qwen3_next", "/linear_num_key_heads", 4},
      {"qwen3_next", "/rms_norm_eps", 1e-2},
      {"qwen3_5_text", "/linear_key_head_dim", 6},
      {"qwen3_5_text", "/rope_parameters/rope_theta", 6000.0},
      {"qwen3_5_text", "/attn_output_gate", false},
      {"qwen3_5_moe_text", "/num_experts_per_tok", 1},
      {"qwen3_5_moe_text", "/norm_topk_prob", false},
      {"qwen3_5_moe_text", "/linear_value_head_dim", 8},
      {"glm4_moe", "/n_group", 1},
      {"glm4_moe", "/topk_group", 2},
      {"glm4_moe", "/routed_scaling_factor", 1.0},
      {"glm4_moe", "/norm_topk_prob", false},
      {"glm4_moe", "/first_k_dense_replace", 2},
      {"glm4_moe", "/use_qk_norm", false},
      {"glm4_moe", "/attention_bias", false},
      {"glm4_moe", "/rope_parameters/partial_rotary_factor", 1.0},
      {"minimax_m2", "/num_experts_per_tok", 1},
      {"minimax_m2", "/rope_parameters/partial_rotary_factor", 1.0},
      {"minimax_m2", "/qk_norm_type", "per_head"},
      {"minimax_m2", "/scoring_func", "softmax"},
      {"gpt_oss", "/swiglu_limit", 0.5},
      {"gpt_oss", "/num_experts_per_tok", 1},
      {"gpt_oss", "/sliding_window", 11},
      {"gpt_oss", "/rope_parameters/truncate", true},
      {"gpt_oss", "/layer_types", {"full_attention", "sliding_attention", "full_attention"}},
      {"granitemoe", "/num_experts_per_tok", 1},
      {"granitemoe", "/residual_multiplier", 1.0},
      {"granitemoe", "/attention_multiplier", 0.3},
      {"ernie4_5_moe", "/moe_k", 1},
      {"ernie4_5_moe", "/moe_num_shared_experts", 0},
      {"ernie4_5_moe", "/moe_layer_start_index", 2},
      {"ernie4_5_moe", "/model_type", "qwen3_moe"},
      {"deepseek_v3", "/n_group", 2},
      {"deepseek_v3", "/topk_group", 3},
      {"deepseek_v3", "/routed_scaling_factor", 1.0},
      {"deepseek_v3", "/norm_topk_prob", false},
      {"deepseek_v3", "/rope_parameters/mscale", 1.0},
      {"deepseek_v3", "/rope_parameters/mscale_all_dim", 0.7},
      {"deepseek_v3", "/rope_interleave", false},
      {"deepseek_v3", "/qk_nope_head_dim", 12},
      {"deepseek_v3", "/kv_lora_rank", 20},
      {"deepseek_v3", "/scoring_func", "softmax"},
      {"deepseek_v3-plain", "/norm_topk_prob", true},
      {"deepseek_v3-plain", "/attention_bias", false},
      {"deepseek_v3-plain", "/q_lora_rank", 24},
      {"glm4_moe_lite", "/n_shared_experts", 2},
      {"glm4_moe_lite", "/mlp_layer_types", {"sparse", "sparse"}},
      {"glm4_moe_lite", "/rms_norm_eps", 1e-2},
      {"glm_moe_dsa", "/index_topk", 39},
      {"glm_moe_dsa", "/v_head_dim", 8},
      {"ernie4_5", "/use_bias", false},
      {"ernie4_5", "/rope_parameters/rope_theta", 6000.0},
  };
  return mutations;
}

TEST(Families, AWrongFieldIsSeenOrRefused) {
  for (const Mutation& mutation : Mutations()) {
    const fs::path family = TestData(std::string("families/") + mutation.family);
    Json config = ReadJsonFile((family / "config.json").string());
    const std::string what = std::string(mutation.family) + " " + mutation.field;
    const Json::json_pointer field(mutation.field);
    ASSERT_FALSE(config.contains(field) && config[field] == mutation.value) << what;
    config[field] = mutation.value;
    config.erase("architectures");  // would refuse another model_type by itself
    GoldenRun run;
    run.config_json = &config;
    double worst = 0;
    try {
      worst = CompareWithGolden(family, run).worst;
    } catch (const InputError&) {
      continue;
    }
    // Far above the tolerance of the golden test; a NaN counts.
    EXPECT_FALSE(worst < 1e-3) << what << " -> " << mutation.value << ": worst " << worst;
  }
}

// By its model_type; what only another name for the same reader is excepted.
TEST(Families, EveryFamilyHasAModelHere) {
  std::set<std::string> here = {"deepseek_v32", "kimi_k2"};
  for (const fs::path& family : Folders())
    here.insert(ReadJsonFile((family / "config.json").string())["model_type"].get<std::string>());
  for (const Family& family : oscar::Families())
    EXPECT_TRUE(here.contains(std::string(family.model_type))) << family.model_type;
}

TEST(Families, EveryFamilyOfTheFolderHasAMutation) {
  std::set<std::string> mutated;
  for (const Mutation& mutation : Mutations()) mutated.insert(mutation.family);
  for (const fs::path& family : Folders()) {
    EXPECT_TRUE(mutated.contains(family.filename().string())) << family;
  }
}

// The text part of a multimodal release: its config under text_config, its tensors under either
// prefix, beside tensors of other modalities that are skipped by name.
TEST(Families, WrappersRunTheirTextPart) {
  const std::tuple<const char*, const char*, const char*> wrappers[] = {
      {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
      {"mistral3", "Mistral3ForConditionalGeneration", "ministral3"},
      {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text-ple"}};
  for (const auto& [model_type, architecture, text] : wrappers) {
    const fs::path family = TestData(std::string("families/") + text);
    for (const std::string prefix : {"model.language_model.", "language_model.model."}) {
      const fs::path directory = TestScratch("wrapper");
      CopyWeights(family, directory, [&](TensorMap& tensors) {
        TensorMap renamed;
        for (auto& [name, tensor] : tensors) {
          const bool head = name == "lm_head.weight";
          const std::string outer = prefix == "language_model.model." ? "language_model." : "";
          renamed[head ? outer + name : prefix + name.substr(6)] = tensor;
        }
        renamed["vision_tower.patch_embedding.weight"] = renamed.begin()->second;
        renamed["model.vision_tower.patch_embedding.weight"] = renamed.begin()->second;
        tensors = renamed;
      });
      copy_file(family / "golden.safetensors", directory / "golden.safetensors");
      for (const char* spelling : {"config.json", "config.legacy.json"}) {
        Json inner = ReadJsonFile((family / spelling).string());
        inner.erase("architectures");
        const Json config = {{"architectures", {architecture}},
                             {"model_type", model_type},
                             {"text_config", inner},
                             {"vision_config", {{"hidden_size", 8}, {"model_type", "siglip"}}},
                             {"image_token_index", 10},
                             {"mm_tokens_per_image", 256}};
        GoldenRun run;
        run.config_json = &config;
        EXPECT_LT(CompareWithGolden(directory, run).worst, 2e-5) << model_type << " " << prefix;
        Json wrong = config;
        wrong["mystery"] = 1;
        run.config_json = &wrong;
        EXPECT_THROW(CompareWithGolden(directory, run), InputError);
      }
    }
  }
}

}  // namespace
}  // namespace oscar
