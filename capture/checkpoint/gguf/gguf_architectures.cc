// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/gguf/gguf_architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using enum GgufRuleKind;
using enum GgufStorage;

constexpr GgufRule kCommon[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", kNorm},
    {"output.weight", "lm_head.weight"},
    {"rope_freqs.weight", "", kSkip},
    {"rope_factors_long.weight", "", kSkip},
    {"rope_factors_short.weight", "", kSkip},
    {"attn_norm.weight", "input_layernorm.weight", kNorm},
    {"attn_q.weight", "self_attn.q_proj.weight", kQueryRows},
    {"attn_q.bias", "self_attn.q_proj.bias", kQueryRows},
    {"attn_k.weight", "self_attn.k_proj.weight", kKeyRows},
    {"attn_k.bias", "self_attn.k_proj.bias", kKeyRows},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", kNorm},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", kNorm},
    {"ffn_norm.weight", "post_attention_layernorm.weight", kNorm},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_gate.bias", "mlp.gate_proj.bias"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_up.bias", "mlp.up_proj.bias"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_down.bias", "mlp.down_proj.bias"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate_exps.weight", "mlp.experts.{e}.gate_proj.weight", kExperts},
    {"ffn_up_exps.weight", "mlp.experts.{e}.up_proj.weight", kExperts},
    {"ffn_down_exps.weight", "mlp.experts.{e}.down_proj.weight", kExperts},
};

constexpr GgufRule kMixtral[] = {
    {"ffn_gate_inp.weight", "block_sparse_moe.gate.weight"},
    {"ffn_gate_exps.weight", "block_sparse_moe.experts.{e}.w1.weight", kExperts},
    {"ffn_down_exps.weight", "block_sparse_moe.experts.{e}.w2.weight", kExperts},
    {"ffn_up_exps.weight", "block_sparse_moe.experts.{e}.w3.weight", kExperts},
};

constexpr GgufRule kQwenExperts[] = {
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", kRow},
};

constexpr GgufRule kQwenHybrid[] = {
    {"post_attention_norm.weight", "post_attention_layernorm.weight", kNorm},
    {"ssm_in.weight", "linear_attn.in_proj_qkvz.weight"},
    {"ssm_ba.weight", "linear_attn.in_proj_ba.weight"},
    {"ssm_a", "linear_attn.A_log", kLogOfMinus},
    {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"ssm_norm.weight", "linear_attn.norm.weight"},
    {"ssm_out.weight", "linear_attn.out_proj.weight"},
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", kRow},
};

// Rules shared by all Gemmas since Gemma 2.
constexpr GgufRule kGemma[] = {
    {"post_attention_norm.weight", "post_attention_layernorm.weight", kNorm},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", kNorm},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", kNorm},
    {"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight"},
    {"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight"},
    {"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight"},
    {"ffn_gate_inp.weight", "router.proj.weight"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"ffn_gate_up_exps.weight", "experts.gate_up_proj"},
    {"ffn_down_exps.weight", "experts.down_proj"},
    {"layer_output_scale.weight", "layer_scalar"},
    {"inp_gate.weight", "per_layer_input_gate.weight"},
    {"proj.weight", "per_layer_projection.weight"},
    {"post_norm.weight", "post_per_layer_input_norm.weight"},
    {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
};

constexpr GgufRule kPhi3[] = {
    {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {"ffn_up.weight", "mlp.gate_up_proj.weight"},
};

constexpr GgufRule kGlm4[] = {
    {"post_attention_norm.weight", "post_self_attn_layernorm.weight"},
    {"post_ffw_norm.weight", "post_mlp_layernorm.weight"},
    {"ffn_up.weight", "mlp.gate_up_proj.weight"},
};

constexpr GgufRule kSharedExperts[] = {
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_shexp.weight", "mlp.shared_experts.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_experts.down_proj.weight"},
    {"attn_q_a.weight", "self_attn.q_a_proj.weight"},
    {"attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight"},
    {"attn_q_b.weight", "self_attn.q_b_proj.weight"},
    {"attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    {"attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight"},
    {"attn_kv_b.weight", "self_attn.kv_b_proj.weight"},
};

constexpr GgufRule kGptOss[] = {
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"attn_sinks.weight", "self_attn.sinks"},
    {"ffn_gate_inp.weight", "mlp.router.weight"},
    {"ffn_gate_inp.bias", "mlp.router.bias"},
    {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"},
};

constexpr std::array kArchitectures = {
    GgufArchitecture{"llama", "llama", "LlamaForCausalLM", kInterleaved, kMixtral, GgufLlamaConfig},
    GgufArchitecture{
        "mistral3", "ministral3", "Ministral3ForCausalLM", kInterleaved, {}, GgufMistral3Config},
    GgufArchitecture{
        "granite", "granite", "GraniteForCausalLM", kInterleaved, {}, GgufGraniteConfig},
    GgufArchitecture{
        "smollm3", "smollm3", "SmolLM3ForCausalLM", kInterleaved, {}, GgufSmolLm3Config},
    GgufArchitecture{"qwen2", "qwen2", "Qwen2ForCausalLM", kAsTrained, {}, GgufDecoderConfig},
    GgufArchitecture{"qwen3", "qwen3", "Qwen3ForCausalLM", kAsTrained, {}, GgufBiasedConfig},
    GgufArchitecture{"qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM", kAsTrained, kQwenExperts,
                     GgufQwenMoeConfig, GgufFusedExperts},
    GgufArchitecture{"qwen3moe",
                     "qwen3_moe",
                     "Qwen3MoeForCausalLM",
                     kAsTrained,
                     {},
                     GgufQwenMoeConfig,
                     GgufFusedExperts},
    GgufArchitecture{"qwen3next", "qwen3_next", "Qwen3NextForCausalLM", kNormsPlusOne, kQwenHybrid,
                     GgufQwenHybridConfig, GgufQwen3NextWeights},
    GgufArchitecture{"qwen35", "qwen3_5_text", "Qwen3_5ForCausalLM", kNormsPlusOne, kQwenHybrid,
                     GgufQwenHybridConfig, GgufQwen35Weights},
    GgufArchitecture{"qwen35moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", kNormsPlusOne,
                     kQwenHybrid, GgufQwenHybridConfig, GgufQwen35Weights},
    GgufArchitecture{"gemma2", "gemma2", "Gemma2ForCausalLM", kNormsPlusOne, kGemma,
                     GgufGemmaConfig},
    GgufArchitecture{"gemma3", "gemma3_text", "Gemma3ForCausalLM", kNormsPlusOne, kGemma,
                     GgufGemmaConfig},
    GgufArchitecture{"gemma4", "gemma4_text", "Gemma4ForCausalLM", kAsTrained, kGemma,
                     GgufGemma4Config},
    GgufArchitecture{"phi3", "phi3", "Phi3ForCausalLM", kAsTrained, kPhi3, GgufPhi3Config},
    GgufArchitecture{"glm4", "glm4", "Glm4ForCausalLM", kAsTrained, kGlm4, GgufGlmConfig},
    GgufArchitecture{"glm4moe", "glm4_moe", "Glm4MoeForCausalLM", kAsTrained, kSharedExperts,
                     GgufGlmConfig},
    GgufArchitecture{"gpt-oss", "gpt_oss", "GptOssForCausalLM", kAsTrained, kGptOss,
                     GgufGptOssConfig, GgufGptOssWeights},
    GgufArchitecture{"deepseek2", "deepseek_v3", "DeepseekV3ForCausalLM", kAsTrained,
                     kSharedExperts, GgufDeepSeekConfig, GgufDeepSeekWeights},
};

// Metadata that has no counterpart in transformers' configurations and affects no weight.
constexpr std::array<std::string_view, 6> kNoMatter = {"vocab_size",           "expert_used_count",
                                                       "expert_count",         "tensor_data_layout",
                                                       "rope.dimension_count", "attention.causal"};

// Splits the name of a layer's tensor: "blk.3.attn_q.weight" into {3, "attn_q.weight"}.
std::optional<std::pair<uint64_t, std::string_view>> LayerTensor(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  constexpr size_t kMostDigits = 6;
  if (!name.starts_with(kBlock)) return std::nullopt;
  const std::string_view rest = name.substr(kBlock.size());
  const size_t dot = rest.find('.');
  if (dot == 0 || dot == rest.npos || dot > kMostDigits) return std::nullopt;
  uint64_t layer = 0;
  for (const char c : rest.substr(0, dot)) {
    if (c < '0' || c > '9') return std::nullopt;
    layer = 10 * layer + static_cast<uint64_t>(c - '0');
  }
  return std::pair(layer, rest.substr(dot + 1));
}

const GgufRule* FindRule(std::span<const GgufRule> own, std::string_view stored) {
  for (const std::span<const GgufRule> rules : {own, std::span<const GgufRule>(kCommon)}) {
    const auto found = std::ranges::find(rules, stored, &GgufRule::stored);
    if (found != rules.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

const GgufArchitecture& FindGgufArchitecture(const GgufModel& model) {
  const std::string name = model.architecture();
  const auto* const found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  if (found != kArchitectures.end()) return *found;
  std::vector<std::string_view> names;
  for (const GgufArchitecture& known : kArchitectures) names.push_back(known.name);
  std::ranges::sort(names);
  model.Fail(fmt::format("architecture {} is not implemented. Supported: {}", Quoted(name),
                         fmt::join(names, ", ")));
}

std::string GgufName(uint64_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

std::string DenseName(uint64_t layer, std::string_view name) {
  return fmt::format("model.layers.{}.{}", layer, name);
}

void GgufFields::PassUnread(Json& config) const {
  for (const auto& [key, value] : model_.header().entries) {
    if (!key.starts_with(prefix_) || read_.contains(key)) continue;
    if (std::ranges::find(kNoMatter, key.substr(prefix_.size())) != kNoMatter.end()) continue;
    Json& field = config[std::string(key)];
    if (const auto* flag = std::get_if<bool>(&value)) field = *flag;
    if (const auto* count = std::get_if<uint64_t>(&value)) field = *count;
    if (const auto* number = std::get_if<int64_t>(&value)) field = *number;
    if (const auto* real = std::get_if<double>(&value)) field = *real;
    if (const auto* text = std::get_if<std::string_view>(&value)) field = Quoted(*text);
    if (const auto* array = std::get_if<GgufArray>(&value))
      field = fmt::format("{} values", array->count);
  }
}

Json GgufModel::Config() const {
  const GgufArchitecture& architecture = FindGgufArchitecture(*this);
  GgufFields fields(*this);
  const GgufTensorInfo* const embedding = Find("token_embd.weight");
  if (embedding == nullptr || embedding->dims.size() != 2)
    Fail(
        "tensor token_embd.weight with two dimensions is missing, so this is not a complete model");
  Json config = {{"model_type", architecture.model_type},
                 {"architectures", {architecture.model_class}},
                 {"num_hidden_layers", fields.num_layers()},
                 {"hidden_size", fields.NeedCount("embedding_length")},
                 {"vocab_size", embedding->dims[1]},
                 {"max_position_embeddings", fields.NeedCount("context_length")},
                 {"num_attention_heads", fields.num_heads()},
                 {"tie_word_embeddings", !fields.Stores("output.weight")}};
  for (const auto& [key, field] : {std::pair("tokenizer.ggml.bos_token_id", "bos_token_id"),
                                   std::pair("tokenizer.ggml.eos_token_id", "eos_token_id")}) {
    if (const auto id = header().Count(key)) config[field] = *id;
  }
  GgufCommonConfig(fields, config);
  architecture.config(fields, config);
  fields.PassUnread(config);
  return config;
}

std::map<std::string, GgufWeight, std::less<>> GgufModel::Weights() const {
  const GgufArchitecture& architecture = FindGgufArchitecture(*this);
  GgufFields fields(*this);
  GgufWeightMaker maker(*this, architecture);
  const uint64_t num_layers = fields.num_layers(), all_layers = fields.num_blocks();
  if (architecture.weights != nullptr) architecture.weights(fields, maker);
  for (const auto& [name, place] : tensors_) {
    if (maker.used(name)) continue;
    const auto layer = LayerTensor(name);
    if (layer && layer->first >= num_layers) continue;  // not a text layer
    const GgufRule* const rule = FindRule(architecture.rules, layer ? layer->second : name);
    if (rule == nullptr) continue;
    maker.Apply(*rule, std::string(name),
                layer ? DenseName(layer->first, rule->dense) : std::string(rule->dense), fields);
  }
  for (const auto& [name, place] : tensors_) {
    const auto layer = LayerTensor(name);
    const bool predicts = layer && layer->first >= num_layers && layer->first < all_layers;
    if (!maker.used(name) && !predicts)
      maker.Apply({}, std::string(name), std::string(name), fields);
  }
  return maker.Finish();
}

}  // namespace oscar
