// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts each architecture's metadata to fields of config.json. Missing values come from
// llama.cpp's code (src/models) or, failing that, from the family's releases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/checkpoint/gguf/gguf_architectures.h"

namespace oscar {
namespace {

// Metadata keys that are copied to fields of config.json if present. A field that the family does
// not read is treated like any unknown field.
constexpr std::pair<const char*, const char*> kCopied[] = {
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.scale", "attention_multiplier"},
    {"attention.shared_kv_layers", "num_kv_shared_layers"},
    {"attention.sliding_window", "sliding_window"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
    {"embedding_scale", "embedding_multiplier"},
    {"expert_count", "num_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_weights_norm", "norm_topk_prob"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"full_attention_interval", "full_attention_interval"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"logit_scale", "logits_scaling"},
    {"residual_scale", "residual_multiplier"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"ssm.conv_kernel", "linear_conv_kernel_dim"},
    {"ssm.group_count", "linear_num_key_heads"},
    {"ssm.state_size", "linear_key_head_dim"},
    {"ssm.time_step_rank", "linear_num_value_heads"},
};

// Rounds a product of two decimals to the intended decimal: 0.0707 times 10 gives 0.707.
double Decimal(double value) { return std::stod(fmt::format("{}", static_cast<float>(value))); }

// Returns a factor f such that f * whole, truncated to an integer, is exactly `part`.
double PartOf(uint64_t part, uint64_t whole) {
  const auto size = static_cast<double>(whole);
  const double factor = static_cast<double>(part) / size;
  return static_cast<uint64_t>(factor * size) == part ? factor : std::nextafter(factor, 1.0);
}

Json YarnScaling(GgufFields& fields, double factor) {
  Json yarn = {{"rope_type", "yarn"}, {"factor", factor}};
  if (const auto original = fields.Count("rope.scaling.original_context_length"))
    yarn["original_max_position_embeddings"] = *original;
  for (const auto& [key, field] : {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
                                   {"rope.scaling.yarn_beta_slow", "beta_slow"},
                                   {"rope.scaling.yarn_attn_factor", "attention_factor"}}) {
    if (const auto value = fields.Number(key)) yarn[field] = *value;
  }
  if (fields.Number("rope.scaling.yarn_ext_factor").value_or(1) != 1)
    fields.model().Fail("rope.scaling.yarn_ext_factor other than 1 is not implemented");
  return yarn;
}

// Returns a rope_scaling with a factor for each pair of dimensions: Llama 3.1's factors for all
// sequences, or longrope's for short and for long ones. Returns null if the file has no factors.
Json PairFactors(GgufFields& fields) {
  const GgufModel& model = fields.model();
  const auto* same = model.Find("rope_freqs.weight");
  const auto* at_short = same != nullptr ? same : model.Find("rope_factors_short.weight");
  const auto* at_long = same != nullptr ? same : model.Find("rope_factors_long.weight");
  if (at_short == nullptr && at_long == nullptr) return nullptr;
  if (at_short == nullptr || at_long == nullptr)
    model.Fail("has only one of rope_factors_short.weight and rope_factors_long.weight");
  const auto decimals = [&](const GgufTensorInfo& tensor) {
    std::vector<double> values;
    for (const float value : model.Floats(tensor)) values.push_back(Decimal(value));
    return values;
  };
  return {{"rope_type", "longrope"},
          {"short_factor", decimals(*at_short)},
          {"long_factor", decimals(*at_long)},
          {"attention_factor", fields.Number("rope.scaling.attn_factor").value_or(1.0)},
          {"original_max_position_embeddings", fields.Count("rope.scaling.original_context_length")
                                                   .value_or(fields.NeedCount("context_length"))}};
}

void AddRopeScaling(GgufFields& fields, Json& config) {
  const std::string type = fields.String("rope.scaling.type").value_or("none");
  const auto factor = fields.Number("rope.scaling.factor");
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope") {
    fields.model().Fail(
        fmt::format("rope.scaling.type {} is not implemented. Supported: none, "
                    "linear, yarn, longrope",
                    type));
  }
  if (type == "linear" && factor)
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", *factor}};
  if (type == "yarn" && factor) config["rope_scaling"] = YarnScaling(fields, *factor);
  if (const Json factors = PairFactors(fields); !factors.is_null())
    config["rope_scaling"] = factors;
}

// Sets yarn's mscale and mscale_all_dim, which are equal in all releases.
void SetMScale(Json& config, double value) {
  if (!config.contains("rope_scaling")) return;
  for (const char* field : {"mscale", "mscale_all_dim"})
    config["rope_scaling"][field] = Decimal(value);
}

void Rename(Json& config, const char* field, const char* to) {
  if (!config.contains(field)) return;
  config[to] = config[field];
  config.erase(field);
}

void SetClass(Json& config, const char* model_type, const char* model_class) {
  config["model_type"] = model_type;
  config["architectures"] = Json::array({model_class});
}

// Lists the layers of a Qwen that have no experts.
void ListDenseLayers(GgufFields& fields, Json& config) {
  config["mlp_only_layers"] = Json::array();
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    if (!fields.Stores(GgufName(i, "ffn_gate_inp.weight"))) config["mlp_only_layers"].push_back(i);
  }
}

constexpr uint64_t kSigmoidGate = 2;  // value of expert_gating_func; 1: softmax

}  // namespace

void GgufCommonConfig(GgufFields& fields, Json& config) {
  for (const auto& [key, field] : kCopied) {
    if (fields.Has(key)) config[field] = fields.Scalar(key);
  }
  if (config.value("num_experts", uint64_t{0}) == 0) {
    for (const char* field : {"num_experts", "num_experts_per_tok", "moe_intermediate_size"})
      config.erase(field);
  }
}

// Sets the fields of a decoder whose layers have heads of one size, with rope.
void GgufDecoderConfig(GgufFields& fields, Json& config) {
  const uint64_t dim = fields.head_dim();
  config["num_key_value_heads"] = fields.num_kv_heads();
  config["head_dim"] = dim;
  if (fields.Count("attention.value_length").value_or(dim) != dim)
    fields.model().Fail("keys and values have different lengths, which is not implemented here");
  if (const auto size = fields.OfAllLayers("feed_forward_length"))
    config["intermediate_size"] = *size;
  const uint64_t turning = fields.Count("rope.dimension_count").value_or(dim);
  if (turning != dim && dim != 0) config["partial_rotary_factor"] = PartOf(turning, dim);
  AddRopeScaling(fields, config);
}

void GgufBiasedConfig(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
}

// Mistral files are stored as "llama", with no fields of their own; those with experts are Mixtral.
void GgufLlamaConfig(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  if (config.contains("num_experts")) return SetClass(config, "mixtral", "MixtralForCausalLM");
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  config["mlp_bias"] = fields.Stores("blk.0.ffn_down.bias");
}

// A file without a query scale for late positions is a plain Mistral, with no window.
void GgufMistral3Config(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  if (const auto all_dim = fields.Number("rope.scaling.yarn_log_multiplier"))
    SetMScale(config, *all_dim);
  const auto beta = fields.Number("attention.temperature_scale");
  if (beta && config.contains("rope_scaling")) {
    config["rope_scaling"]["llama_4_scaling_beta"] = *beta;
    if (const auto length = fields.Count("attention.temperature_length"))
      config["rope_scaling"]["original_max_position_embeddings"] = *length;
    return;
  }
  SetClass(config, "mistral", "MistralForCausalLM");
  config["sliding_window"] = nullptr;
}

void GgufGraniteConfig(GgufFields& fields, Json& config) {
  GgufBiasedConfig(fields, config);
  if (!config.contains("attention_multiplier"))
    fields.model().Fail("granite.attention.scale is missing: a number is needed");
}

// llama.cpp omits rope in every fourth layer, as the only release does.
void GgufSmolLm3Config(GgufFields& fields, Json& config) {
  GgufBiasedConfig(fields, config);
  config["no_rope_layer_interval"] = 4;
}

// Since Qwen3, the weights of the chosen experts are normalized (src/models/qwen2moe.cpp and
// qwen3moe.cpp).
void GgufQwenMoeConfig(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  ListDenseLayers(fields, config);
  const bool third = config["model_type"] == "qwen3_moe";
  if (third) config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = third;
}

void GgufQwenHybridConfig(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  config["linear_value_head_dim"] = fields.NeedCount("ssm.inner_size") /
                                    std::max<uint64_t>(1, fields.NeedCount("ssm.time_step_rank"));
  if (config["model_type"] == "qwen3_next") ListDenseLayers(fields, config);
}

// The scale of q·k follows from head_dim, except in the largest models (src/models/gemma2.cpp and
// gemma3.cpp), which are recognized by their number of layers.
void GgufGemmaConfig(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  const bool second = config["model_type"] == "gemma2";
  const bool largest = fields.num_layers() == (second ? 46U : 62U);
  config["query_pre_attn_scalar"] =
      largest ? fields.NeedCount("embedding_length") / fields.num_heads() : fields.head_dim();
  if (!config.contains("final_logit_softcapping")) config["final_logit_softcapping"] = nullptr;
  if (second) return;
  const bool slides = config.contains("sliding_window");
  config["sliding_window_pattern"] =
      slides ? fields.Count("attention.sliding_window_pattern").value_or(6) : 1;
  if (!config.contains("rope_local_base_freq")) config["rope_local_base_freq"] = 10000.0;
  if (!config.contains("rope_theta")) config["rope_theta"] = 1e6;
}

// Sliding-window layers have another head_dim. In full layers, only the pairs whose factor in
// rope_freqs.weight is 1 are rotated by rope.
void GgufGemma4Config(GgufFields& fields, Json& config) {
  const GgufModel& model = fields.model();
  const uint64_t layers = fields.num_layers();
  const auto slides = fields.Bools("attention.sliding_window_pattern");
  const auto kv_heads = fields.EachLayer("attention.head_count_kv");
  const auto mlp = fields.EachLayer("feed_forward_length");
  if (!slides || slides->size() != layers || !kv_heads || !mlp)
    model.Fail("gemma4 needs sliding_window_pattern and head_count_kv for each of its layers");
  const uint64_t full = fields.NeedCount("attention.key_length");
  const uint64_t sliding = fields.NeedCount("attention.key_length_swa");
  config["layer_types"] = Json::array();
  config["global_head_dim"] = full;
  config["head_dim"] = sliding;
  config["attention_k_eq_v"] = false;
  for (uint64_t i = 0; i < layers; ++i) {
    config["layer_types"].push_back((*slides)[i] ? "sliding_attention" : "full_attention");
    const char* const field = (*slides)[i] ? "num_key_value_heads" : "num_global_key_value_heads";
    const uint64_t heads = (*kv_heads)[i];
    if (config.value(field, heads) != heads)
      model.Fail("gemma4's layers of one kind have different numbers of KV heads");
    config[field] = heads;
    if (fields.Stores(GgufName(i, "attn_k.weight")) && !fields.Stores(GgufName(i, "attn_v.weight")))
      config["attention_k_eq_v"] = true;
  }
  for (const auto& [key, dim] : {std::pair("attention.value_length", full),
                                 {"attention.value_length_swa", sliding},
                                 {"rope.dimension_count", full},
                                 {"rope.dimension_count_swa", sliding}}) {
    if (fields.Count(key).value_or(dim) != dim)
      model.Fail(fmt::format("gemma4.{} other than {} is not implemented", key, dim));
  }
  config["intermediate_size"] = mlp->front();
  config["use_double_wide_mlp"] = mlp->back() == 2 * mlp->front();
  config["vocab_size_per_layer_input"] = config["vocab_size"];
  if (!config.contains("hidden_size_per_layer_input")) config["hidden_size_per_layer_input"] = 0;
  if (!config.contains("final_logit_softcapping")) config["final_logit_softcapping"] = nullptr;
  Json turning = {{"rope_type", "proportional"}, {"rope_theta", config.value("rope_theta", 1e6)}};
  if (const auto* factors = model.Find("rope_freqs.weight")) {
    const std::vector<float> values = model.Floats(*factors);
    const auto turn = std::ranges::count(values, 1.F);
    if (turn == 0 || std::count(values.begin(), values.begin() + turn, 1.F) != turn)
      model.Fail(
          "rope_freqs.weight of gemma4 must begin with the rotated pairs, which have factor 1");
    turning["partial_rotary_factor"] =
        static_cast<double>(turn) / static_cast<double>(values.size());
  }
  const double local = config.value("rope_local_base_freq", 10000.0);
  config["rope_parameters"] = {
      {"full_attention", turning},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local}}}};
  for (const char* field : {"rope_theta", "rope_local_base_freq"}) config.erase(field);
  config["enable_moe_block"] = config.contains("num_experts");
  Rename(config, "num_experts_per_tok", "top_k_experts");
}

void GgufPhi3Config(GgufFields& fields, Json& config) {
  GgufDecoderConfig(fields, config);
  if (config.value("sliding_window", 0) == 0) config["sliding_window"] = nullptr;
  for (const char* key : {"rope.scaling.attn_factor", "rope.scaling.original_context_length"})
    fields.Ignore(key);  // unused by releases without factors
}

void GgufGlmConfig(GgufFields& fields, Json& config) {
  GgufBiasedConfig(fields, config);
  if (!config.contains("partial_rotary_factor")) config["partial_rotary_factor"] = 1.0;
  if (config["model_type"] == "glm4") {
    if (fields.Has("rope.dimension_sections"))
      fields.model().Fail("the text part of GLM-4V, whose heads are reordered, is not implemented");
    return;
  }
  config["use_qk_norm"] = fields.Stores("blk.0.attn_q_norm.weight");
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
  if (fields.Count("expert_gating_func").value_or(kSigmoidGate) != kSigmoidGate)
    fields.model().Fail("glm4moe.expert_gating_func other than 2, sigmoid, is not implemented");
}

// No release rounds the ramp of yarn to whole pairs.
void GgufGptOssConfig(GgufFields& fields, Json& config) {
  GgufBiasedConfig(fields, config);
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;
  Rename(config, "moe_intermediate_size", "intermediate_size");
}

// DeepSeek-V2 scores experts by softmax, V3 and Kimi-K2 by sigmoid.
void GgufDeepSeekConfig(GgufFields& fields, Json& config) {
  const char* const ending = fields.Has("attention.key_length_mla") ? "_mla" : "";
  const uint64_t rope = fields.NeedCount("rope.dimension_count");
  const uint64_t key = fields.NeedCount(fmt::format("attention.key_length{}", ending));
  if (key <= rope) fields.model().Fail("deepseek2.rope.dimension_count must be below key_length");
  config["num_key_value_heads"] = fields.num_heads();
  config["qk_rope_head_dim"] = rope;
  config["qk_nope_head_dim"] = key - rope;
  config["v_head_dim"] = fields.NeedCount(fmt::format("attention.value_length{}", ending));
  if (!config.contains("q_lora_rank")) config["q_lora_rank"] = nullptr;
  if (const auto size = fields.OfAllLayers("feed_forward_length"))
    config["intermediate_size"] = *size;
  for (const char* of_cache :
       {"attention.head_count_kv", "attention.key_length", "attention.value_length"})
    fields.Ignore(of_cache);
  AddRopeScaling(fields, config);
  constexpr double kFactor = 0.1;  // the converter multiplies mscale_all_dim by this
  if (const auto multiplier = fields.Number("rope.scaling.yarn_log_multiplier"))
    SetMScale(config, *multiplier / kFactor);
  if (!config.contains("num_experts"))
    fields.model().Fail("deepseek2 without experts is not implemented");
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
  if (fields.Count("expert_gating_func").value_or(1) == kSigmoidGate) {
    if (!config.contains("routed_scaling_factor")) config["routed_scaling_factor"] = 1.0;
    return;
  }
  SetClass(config, "deepseek_v2", "DeepseekV2ForCausalLM");
  config["topk_method"] = config.value("n_group", 1) == 1 ? "greedy" : "group_limited_greedy";
}

}  // namespace oscar
