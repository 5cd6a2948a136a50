// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration of each architecture in the words of config.json. What the metadata leave out
// is what llama.cpp has in its code (src/models), or else what the releases of the family have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/checkpoint/gguf/gguf_architectures.h"
#include "linalg/error.h"

namespace oscar {
namespace {

// A field of config.json for a field of the metadata, where that is there.
void Copy(GgufFields& fields, std::string_view key, Json& config, const char* field) {
  if (const auto value = fields.Number(key)) config[field] = *value;
}
void CopyCount(GgufFields& fields, std::string_view key, Json& config, const char* field) {
  if (const auto value = fields.OfAllLayers(key)) config[field] = *value;
}

// The product as the decimal that was meant: 0.0707 times 10 is 0.707.
double Decimal(double value) { return std::stod(fmt::format("{}", static_cast<float>(value))); }

// A factor that makes just `part` of `whole` when it is multiplied and cut to an integer.
double PartOf(uint64_t part, uint64_t whole) {
  const auto size = static_cast<double>(whole);
  const double factor = static_cast<double>(part) / size;
  return static_cast<uint64_t>(factor * size) == part ? factor : std::nextafter(factor, 1.0);
}

// What decoders with heads of one size share.
void CommonAttention(GgufFields& fields, Json& config) {
  const uint64_t dim = fields.head_dim();
  config["num_key_value_heads"] = fields.num_kv_heads();
  config["head_dim"] = dim;
  if (fields.Count("attention.value_length").value_or(dim) != dim)
    fields.model().Fail("keys and values have different lengths, which is not implemented here");
  CopyCount(fields, "feed_forward_length", config, "intermediate_size");
  const uint64_t turning = fields.Count("rope.dimension_count").value_or(dim);
  if (turning != dim && dim != 0) config["partial_rotary_factor"] = PartOf(turning, dim);
}

// Qwen's layers without experts.
void ListDenseLayers(GgufFields& fields, Json& config) {
  config["mlp_only_layers"] = Json::array();
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    if (!fields.Stores(GgufName(i, "ffn_gate_inp.weight"))) config["mlp_only_layers"].push_back(i);
  }
}

Json YarnScaling(GgufFields& fields, double factor) {
  Json yarn = {{"rope_type", "yarn"}, {"factor", factor}};
  if (const auto original = fields.Count("rope.scaling.original_context_length"))
    yarn["original_max_position_embeddings"] = *original;
  Copy(fields, "rope.scaling.yarn_beta_fast", yarn, "beta_fast");
  Copy(fields, "rope.scaling.yarn_beta_slow", yarn, "beta_slow");
  Copy(fields, "rope.scaling.yarn_attn_factor", yarn, "attention_factor");
  if (fields.Number("rope.scaling.yarn_ext_factor").value_or(1) != 1)
    fields.model().Fail("rope.scaling.yarn_ext_factor other than 1 is not implemented");
  return yarn;
}

// Factors of each pair: of Llama 3.1's frequencies, or of longrope for short and long sequences.
void AddPairFactors(GgufFields& fields, Json& config) {
  const GgufModel& model = fields.model();
  const auto* same = model.Find("rope_freqs.weight");
  const auto* at_short = same != nullptr ? same : model.Find("rope_factors_short.weight");
  const auto* at_long = same != nullptr ? same : model.Find("rope_factors_long.weight");
  if (at_short == nullptr && at_long == nullptr) return;
  if (at_short == nullptr || at_long == nullptr)
    model.Fail("has only one of rope_factors_short.weight and rope_factors_long.weight");
  const auto decimals = [&](const GgufTensorInfo& tensor) {
    std::vector<double> values;
    for (const float value : model.Floats(tensor)) values.push_back(Decimal(value));
    return values;
  };
  config["rope_scaling"] = {
      {"rope_type", "longrope"},
      {"short_factor", decimals(*at_short)},
      {"long_factor", decimals(*at_long)},
      {"attention_factor", fields.Number("rope.scaling.attn_factor").value_or(1.0)},
      {"original_max_position_embeddings", fields.Count("rope.scaling.original_context_length")
                                               .value_or(fields.NeedCount("context_length"))}};
}

// rope_theta and rope_scaling.
void CommonRope(GgufFields& fields, Json& config) {
  Copy(fields, "rope.freq_base", config, "rope_theta");
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
  AddPairFactors(fields, config);
}

void CommonExperts(GgufFields& fields, Json& config, const char* count, const char* size) {
  config[count] = fields.NeedCount("expert_count");
  config["num_experts_per_tok"] = fields.NeedCount("expert_used_count");
  CopyCount(fields, "expert_feed_forward_length", config, size);
}

// Of DeepSeek and GLM.
void SigmoidExperts(GgufFields& fields, Json& config) {
  CommonExperts(fields, config, "n_routed_experts", "moe_intermediate_size");
  config["n_shared_experts"] = fields.Count("expert_shared_count").value_or(0);
  config["first_k_dense_replace"] = fields.Count("leading_dense_block_count").value_or(0);
  config["norm_topk_prob"] = fields.Bool("expert_weights_norm").value_or(false);
  config["routed_scaling_factor"] = fields.Number("expert_weights_scale").value_or(1.0);
  config["n_group"] = fields.Count("expert_group_count").value_or(1);
  config["topk_group"] = fields.Count("expert_group_used_count").value_or(1);
}

constexpr uint64_t kSigmoidGate = 2;  // expert_gating_func; 1: softmax

}  // namespace

// Mistral is a llama here and has no field of its own; Mixtral has experts.
void GgufLlamaConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  if (fields.Count("expert_count").value_or(0) > 0) {
    config["model_type"] = "mixtral";
    config["architectures"] = {"MixtralForCausalLM"};
    CommonExperts(fields, config, "num_local_experts", "intermediate_size");
    return;
  }
  fields.Ignore("expert_used_count");
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  config["mlp_bias"] = fields.Stores("blk.0.ffn_down.bias");
}

// Without the scale of late positions it is a Mistral, whose text has no window.
void GgufMistral3Config(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  const auto beta = fields.Number("attention.temperature_scale");
  const auto all_dim = fields.Number("rope.scaling.yarn_log_multiplier");
  if (all_dim && config.contains("rope_scaling")) {
    config["rope_scaling"]["mscale"] = *all_dim;
    config["rope_scaling"]["mscale_all_dim"] = *all_dim;
  }
  if (beta && config.contains("rope_scaling")) {
    config["rope_scaling"]["llama_4_scaling_beta"] = *beta;
    if (const auto length = fields.Count("attention.temperature_length"))
      config["rope_scaling"]["original_max_position_embeddings"] = *length;
    return;
  }
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  config["sliding_window"] = nullptr;
}

void GgufGraniteConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  Copy(fields, "attention.scale", config, "attention_multiplier");
  Copy(fields, "embedding_scale", config, "embedding_multiplier");
  Copy(fields, "residual_scale", config, "residual_multiplier");
  Copy(fields, "logit_scale", config, "logits_scaling");
  if (!config.contains("attention_multiplier"))
    fields.model().Fail("granite.attention.scale is missing: a number is needed");
  for (const char* key : {"expert_count", "expert_used_count"}) {
    if (fields.Count(key).value_or(0) > 0)
      fields.model().Fail("a granite with experts is not implemented");
  }
}

// llama.cpp leaves every fourth layer without rope, as the one release has it.
void GgufSmolLm3Config(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  config["no_rope_layer_interval"] = 4;
}

// With experts, weights of the chosen are normalized from Qwen3 on (src/models/qwen2moe.cpp and
// qwen3moe.cpp).
void GgufQwenConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  const std::string type = config["model_type"];
  if (type == "qwen3" || type == "qwen3_moe")
    config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  if (!type.ends_with("_moe")) return;
  CommonExperts(fields, config, "num_experts", "moe_intermediate_size");
  ListDenseLayers(fields, config);
  config["norm_topk_prob"] = fields.Bool("expert_weights_norm").value_or(type == "qwen3_moe");
  fields.Ignore("expert_weights_scale");
  if (type == "qwen2_moe")
    CopyCount(fields, "expert_shared_feed_forward_length", config,
              "shared_expert_intermediate_size");
}

void GgufQwenHybridConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  const uint64_t v_heads = fields.NeedCount("ssm.time_step_rank");
  config["linear_num_key_heads"] = fields.NeedCount("ssm.group_count");
  config["linear_num_value_heads"] = v_heads;
  config["linear_key_head_dim"] = fields.NeedCount("ssm.state_size");
  config["linear_value_head_dim"] =
      fields.NeedCount("ssm.inner_size") / std::max<uint64_t>(1, v_heads);
  config["linear_conv_kernel_dim"] = fields.NeedCount("ssm.conv_kernel");
  config["full_attention_interval"] = fields.Count("full_attention_interval").value_or(4);
  if (config["model_type"] == "qwen3_5_text") return;
  if (config["model_type"] == "qwen3_next") ListDenseLayers(fields, config);
  CommonExperts(fields, config, "num_experts", "moe_intermediate_size");
  CopyCount(fields, "expert_shared_feed_forward_length", config, "shared_expert_intermediate_size");
  fields.Ignore("expert_weights_scale");
  fields.Ignore("expert_weights_norm");
}

// The scale of q·k is that of a head, but for the largest models (src/models/gemma2.cpp and
// gemma3.cpp), which are known by their number of layers.
void GgufGemmaConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  const bool second = config["model_type"] == "gemma2";
  const bool largest = fields.num_layers() == (second ? 46U : 62U);
  config["query_pre_attn_scalar"] =
      largest ? fields.NeedCount("embedding_length") / fields.num_heads() : fields.head_dim();
  CopyCount(fields, "attention.sliding_window", config, "sliding_window");
  config["final_logit_softcapping"] = nullptr;
  Copy(fields, "final_logit_softcapping", config, "final_logit_softcapping");
  CommonRope(fields, config);
  if (second) {
    Copy(fields, "attn_logit_softcapping", config, "attn_logit_softcapping");
    return;
  }
  if (const auto pattern = fields.Count("attention.sliding_window_pattern"))
    config["sliding_window_pattern"] = *pattern;
  if (!config.contains("sliding_window")) config["sliding_window_pattern"] = 1;
  config["rope_local_base_freq"] = fields.Number("rope.freq_base_swa").value_or(10000.0);
  if (!config.contains("rope_theta")) config["rope_theta"] = 1e6;
}

// Which layers slide decides the size of their heads; rope_freqs.weight says which pairs of full
// layers turn: those whose factor is 1.
void GgufGemma4Config(GgufFields& fields, Json& config) {
  const GgufModel& model = fields.model();
  const uint64_t layers = fields.num_layers();
  const auto slides = fields.Bools("attention.sliding_window_pattern");
  const auto kv_heads = fields.EachLayer("attention.head_count_kv");
  const auto mlp = fields.EachLayer("feed_forward_length");
  if (!slides || slides->size() != layers || !kv_heads || !mlp)
    model.Fail("gemma4 needs sliding_window_pattern and head_count_kv, of each of its layers");
  const uint64_t full = fields.NeedCount("attention.key_length");
  const uint64_t sliding = fields.NeedCount("attention.key_length_swa");
  config["layer_types"] = Json::array();
  config["global_head_dim"] = full;
  config["head_dim"] = sliding;
  bool k_is_v = false;
  for (uint64_t i = 0; i < layers; ++i) {
    config["layer_types"].push_back((*slides)[i] ? "sliding_attention" : "full_attention");
    const char* const field = (*slides)[i] ? "num_key_value_heads" : "num_global_key_value_heads";
    const uint64_t heads = (*kv_heads)[i];
    if (config.value(field, heads) != heads)
      model.Fail("gemma4's layers of one kind have different numbers of KV heads");
    config[field] = heads;
    const bool stores_k = fields.Stores(GgufName(i, "attn_k.weight"));
    k_is_v |= stores_k && !fields.Stores(GgufName(i, "attn_v.weight"));
  }
  config["attention_k_eq_v"] = k_is_v;
  for (const auto& [key, dim] : {std::pair("attention.value_length", full),
                                 {"attention.value_length_swa", sliding},
                                 {"rope.dimension_count", full},
                                 {"rope.dimension_count_swa", sliding}}) {
    if (fields.Count(key).value_or(dim) != dim)
      model.Fail(fmt::format("gemma4.{} other than {} is not implemented", key, dim));
  }
  config["intermediate_size"] = mlp->front();
  config["use_double_wide_mlp"] = mlp->back() == 2 * mlp->front();
  config["num_kv_shared_layers"] = fields.Count("attention.shared_kv_layers").value_or(0);
  config["hidden_size_per_layer_input"] =
      fields.Count("embedding_length_per_layer_input").value_or(0);
  config["vocab_size_per_layer_input"] = config["vocab_size"];
  CopyCount(fields, "attention.sliding_window", config, "sliding_window");
  config["final_logit_softcapping"] = nullptr;
  Copy(fields, "final_logit_softcapping", config, "final_logit_softcapping");
  Json turning = {{"rope_type", "proportional"},
                  {"rope_theta", fields.Number("rope.freq_base").value_or(1e6)}};
  if (const auto* factors = model.Find("rope_freqs.weight")) {
    const std::vector<float> values = model.Floats(*factors);
    const auto turn = std::ranges::count(values, 1.F);
    if (turn == 0 ||
        std::any_of(values.begin(), values.begin() + turn, [](float f) { return f != 1; }))
      model.Fail("rope_freqs.weight of a gemma4 must begin with the pairs that turn, of factor 1");
    turning["partial_rotary_factor"] =
        static_cast<double>(turn) / static_cast<double>(values.size());
  }
  config["rope_parameters"] = {
      {"full_attention", turning},
      {"sliding_attention",
       {{"rope_type", "default"},
        {"rope_theta", fields.Number("rope.freq_base_swa").value_or(10000.0)}}}};
  if (fields.Count("expert_count").value_or(0) == 0) {
    for (const char* key : {"expert_used_count", "expert_feed_forward_length"}) fields.Ignore(key);
    return;
  }
  config["enable_moe_block"] = true;
  CommonExperts(fields, config, "num_experts", "moe_intermediate_size");
  config["top_k_experts"] = config["num_experts_per_tok"];
  config.erase("num_experts_per_tok");
}

void GgufPhi3Config(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  const uint64_t window = fields.OfAllLayers("attention.sliding_window").value_or(0);
  config["sliding_window"] = window == 0 ? Json(nullptr) : Json(window);
  for (const char* key : {"rope.scaling.attn_factor", "rope.scaling.original_context_length"})
    fields.Ignore(key);
}

void GgufGlm4Config(GgufFields& fields, Json& config) {
  if (fields.Has("rope.dimension_sections"))
    fields.model().Fail("the text part of GLM-4V, whose heads are reordered, is not implemented");
  CommonAttention(fields, config);
  CommonRope(fields, config);
  if (!config.contains("partial_rotary_factor")) config["partial_rotary_factor"] = 1.0;
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
}

void GgufGlm4MoeConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  SigmoidExperts(fields, config);
  if (!config.contains("partial_rotary_factor")) config["partial_rotary_factor"] = 1.0;
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
  config["use_qk_norm"] = fields.Stores("blk.0.attn_q_norm.weight");
  if (fields.Count("expert_gating_func").value_or(kSigmoidGate) != kSigmoidGate)
    fields.model().Fail("glm4moe.expert_gating_func other than 2, sigmoid, is not implemented");
}

// The ramp of its yarn is not rounded to whole pairs in any release.
void GgufGptOssConfig(GgufFields& fields, Json& config) {
  CommonAttention(fields, config);
  CommonRope(fields, config);
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;
  CommonExperts(fields, config, "num_local_experts", "intermediate_size");
  CopyCount(fields, "attention.sliding_window", config, "sliding_window");
  config["attention_bias"] = fields.Stores("blk.0.attn_q.bias");
}

// DeepSeek-V2 has softmax scores, V3 and Kimi-K2 sigmoids.
void GgufDeepSeekConfig(GgufFields& fields, Json& config) {
  const bool absorbed = fields.Has("attention.key_length_mla");
  const uint64_t rope = fields.NeedCount("rope.dimension_count");
  const uint64_t key =
      fields.NeedCount(absorbed ? "attention.key_length_mla" : "attention.key_length");
  if (key <= rope) fields.model().Fail("deepseek2.rope.dimension_count must be below key_length");
  config["num_key_value_heads"] = fields.num_heads();
  config["qk_rope_head_dim"] = rope;
  config["qk_nope_head_dim"] = key - rope;
  config["v_head_dim"] =
      fields.NeedCount(absorbed ? "attention.value_length_mla" : "attention.value_length");
  config["kv_lora_rank"] = fields.NeedCount("attention.kv_lora_rank");
  config["q_lora_rank"] = nullptr;
  CopyCount(fields, "attention.q_lora_rank", config, "q_lora_rank");
  CopyCount(fields, "feed_forward_length", config, "intermediate_size");
  for (const char* key_of_cache :
       {"attention.head_count_kv", "attention.key_length", "attention.value_length"})
    fields.Ignore(key_of_cache);
  CommonRope(fields, config);
  const auto log_multiplier = fields.Number("rope.scaling.yarn_log_multiplier");
  if (log_multiplier && config.contains("rope_scaling")) {
    constexpr double kFactor = 0.1;  // the converter multiplies mscale_all_dim by it
    config["rope_scaling"]["mscale"] = Decimal(*log_multiplier / kFactor);
    config["rope_scaling"]["mscale_all_dim"] = Decimal(*log_multiplier / kFactor);
  }
  if (fields.Count("expert_count").value_or(0) == 0)
    fields.model().Fail("a deepseek2 without experts is not implemented");
  SigmoidExperts(fields, config);
  if (fields.Count("expert_gating_func").value_or(1) == kSigmoidGate) return;
  config["model_type"] = "deepseek_v2";
  config["architectures"] = {"DeepseekV2ForCausalLM"};
  config["topk_method"] = config["n_group"] == 1 ? "greedy" : "group_limited_greedy";
}

}  // namespace oscar
