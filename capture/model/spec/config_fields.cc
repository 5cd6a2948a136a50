// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "capture/files/nearest.h"

namespace oscar {
namespace {

struct IrrelevantField {
  std::string_view name;
  std::string_view reason;
};

constexpr std::string_view kTraining = "only used in training";
constexpr std::string_view kTokens = "token ids only matter to the tokenizer and to generation";
constexpr std::string_view kGeneration = "controls generation, not the forward pass";
constexpr std::string_view kOutputs = "chooses what the Python class returns";
constexpr std::string_view kProvenance = "says where the files came from";
constexpr std::string_view kVision = "describes how images become tokens";
constexpr std::string_view kKernels = "chooses between implementations of the same arithmetic";

constexpr IrrelevantField kIrrelevant[] = {
    {"_attn_implementation", kKernels},
    {"_attn_implementation_autoset", kKernels},
    {"_flash_attn_2_enabled", kKernels},
    {"_name_or_path", kProvenance},
    {"attention_dropout", kTraining},
    {"attention_probs_dropout_prob", kTraining},
    {"attention_softmax_in_fp32", kKernels},
    {"attn_implementation", kKernels},
    {"bad_words_ids", kGeneration},
    {"begin_suppress_tokens", kGeneration},
    {"bos_token_id", kTokens},
    {"cache_implementation", kKernels},
    {"chunk_size_feed_forward", kKernels},
    {"classifier_dropout", kTraining},
    {"decoder_start_token_id", kTokens},
    {"diversity_penalty", kGeneration},
    {"do_sample", kGeneration},
    {"early_stopping", kGeneration},
    {"embd_pdrop", kTraining},
    {"embedding_dropout", kTraining},
    {"encoder_no_repeat_ngram_size", kGeneration},
    {"eos_token_id", kTokens},
    {"exponential_decay_length_penalty", kGeneration},
    {"finetuning_task", kProvenance},
    {"forced_bos_token_id", kGeneration},
    {"forced_eos_token_id", kGeneration},
    {"fused_mlp", kKernels},
    {"generation_config", kGeneration},
    {"gradient_checkpointing", kTraining},
    {"hidden_dropout", kTraining},
    {"hidden_dropout_prob", kTraining},
    {"id2label", kOutputs},
    {"ignore_index", kTraining},
    {"init_std", kTraining},
    {"initializer_range", kTraining},
    {"is_composition", kProvenance},
    {"is_llama_config", kProvenance},
    {"label2id", kOutputs},
    {"language_model_only", kOutputs},
    {"length_penalty", kGeneration},
    {"max_length", kGeneration},
    {"max_new_tokens", kGeneration},
    {"min_length", kGeneration},
    {"neftune_noise_alpha", kTraining},
    {"no_repeat_ngram_size", kGeneration},
    {"num_beam_groups", kGeneration},
    {"num_beams", kGeneration},
    {"num_return_sequences", kGeneration},
    {"output_attentions", kOutputs},
    {"output_hidden_states", kOutputs},
    {"output_router_logits", kOutputs},
    {"output_scores", kOutputs},
    {"pad_token_id", kTokens},
    {"perceiver_config", kVision},
    {"pixel_shuffle_factor", kVision},
    {"prefix", kGeneration},
    {"pretraining_sequence_length", kProvenance},
    {"pretraining_tp", kKernels},
    {"problem_type", kTraining},
    {"remove_invalid_values", kGeneration},
    {"repetition_penalty", kGeneration},
    {"resid_pdrop", kTraining},
    {"residual_dropout", kTraining},
    {"return_dict", kOutputs},
    {"return_dict_in_generate", kOutputs},
    {"router_aux_loss_coef", kTraining},
    {"router_jitter_noise", kTraining},
    {"scale_attention_softmax_in_fp32", kKernels},
    {"sep_token_id", kTokens},
    {"suppress_tokens", kGeneration},
    {"task_specific_params", kGeneration},
    {"temperature", kGeneration},
    {"tf_legacy_loss", kTraining},
    {"tokenizer_class", kTokens},
    {"top_k", kGeneration},
    {"top_p", kGeneration},
    {"torchscript", kKernels},
    {"transformers.js_config", kKernels},
    {"transformers_version", kProvenance},
    {"typical_p", kGeneration},
    {"unsloth_fixed", kProvenance},
    {"unsloth_version", kProvenance},
    {"use_bfloat16", kKernels},
    {"use_cache", kGeneration},
    {"use_flash_attention", kKernels},
    {"use_flash_attn", kKernels},
    {"use_parallel_embedding", kKernels},
};

// Fields of other families and variants. A family that implements one of these fields reads it, so
// the field is not looked up here.
constexpr MathField kMath[] = {
    {"add_cross_attention", "attends to an encoder", "false"},
    {"alibi", "position biases instead of rotary embeddings", "false"},
    {"attention_bias", "biases of the attention projections", "false"},
    {"attention_chunk_size", "attention in chunks of tokens", "null"},
    {"attention_multiplier", "factor on q·k", "null"},
    {"attention_out_bias", "bias of the output projection", "false"},
    {"attention_sink", "an extra softmax logit", "false"},
    {"attention_value_scale", "factor on values", "1.0"},
    {"attention_output_gate", "gate on the attention output", "false"},
    {"attn_logit_softcapping", "softcap on attention logits", "null"},
    {"attention_k_eq_v", "values computed by the projection of keys", "false"},
    {"attn_output_gate", "gate on the attention output", "false"},
    {"auto_map", "the model runs its own Python code", "{}"},
    {"clip_qkv", "clamps queries, keys and values", "null"},
    {"compression_config", "weight format", "null"},
    {"cross_attention_hidden_size", "attends to an encoder", "null"},
    {"cross_attention_layers", "layers that attend to an encoder", "[]"},
    {"decoder_sparse_step", "mixture of experts", "null"},
    {"embedding_multiplier", "factor on embeddings", "1.0"},
    {"final_logit_softcapping", "softcap on logits", "null"},
    {"first_k_dense_replace", "mixture of experts", "null"},
    {"enable_moe_block", "mixture of experts", "false"},
    {"global_head_dim", "a separate geometry for full-attention layers", "null"},
    {"hidden_activation", "second name of hidden_act", "\"silu\""},
    {"hidden_size_per_layer_input", "embeddings of each layer", "0"},
    {"is_causal", "attention to later tokens", "true"},
    {"is_decoder", "a decoder inside an encoder-decoder model", "false | true"},
    {"is_encoder_decoder", "an encoder-decoder model", "false"},
    {"kv_lora_rank", "latent attention (MLA)", "null"},
    {"layer_types", "attention kind of each layer", "null"},
    {"lm_head_bias", "bias of the head", "false"},
    {"llama_4_scaling_beta", "scales queries by position", "null"},
    {"logit_scale", "factor on logits", "1.0"},
    {"logits_scaling", "divisor of logits", "1.0"},
    {"mlp_bias", "biases of the MLP projections", "false"},
    {"mlp_only_layers", "mixture of experts", "[]"},
    {"moe_intermediate_size", "mixture of experts", "null"},
    {"n_routed_experts", "mixture of experts", "0"},
    {"n_shared_experts", "an expert that sees every token", "0"},
    {"no_rope_layers", "layers without position embeddings", "null"},
    {"num_experts", "mixture of experts", "0"},
    {"num_experts_per_tok", "mixture of experts", "0"},
    {"num_kv_shared_layers", "layers that reuse keys and values", "0"},
    {"num_local_experts", "mixture of experts", "0"},
    {"num_reward_heads", "heads that score instead of predicting", "0"},
    {"num_shared_experts", "an expert that sees every token", "0"},
    {"num_nextn_predict_layers", "multi-token prediction layers", "0"},
    {"num_global_key_value_heads", "a separate geometry for full-attention layers", "null"},
    {"original_max_position_embeddings", "scaled rotary embedding", "null"},
    {"partial_rotary_factor", "rotary embedding on part of the head", "1.0"},
    {"per_layer_config", "layers of different geometries", "{}"},
    {"pruned_heads", "missing attention heads", "{}"},
    {"q_lora_rank", "latent attention (MLA)", "null"},
    {"qk_layer_norms", "norm of queries and keys", "false"},
    {"qk_layernorm", "norm of queries and keys", "false"},
    {"qk_norm", "norm of queries and keys", "false"},
    {"qkv_bias", "biases of queries, keys and values", "false"},
    {"quantization", "weight format", "null"},
    {"quantization_config", "weight format", "null"},
    {"query_pre_attn_scalar", "factor on q·k", "null"},
    {"residual_multiplier", "factor on residual branches", "1.0"},
    {"rope_interleaved", "pairs even with odd dimensions", "false"},
    {"rope_local_base_freq", "a second rotary base for sliding layers", "null"},
    {"rope_parameters", "rotary embedding", "null"},
    {"rope_scaling", "rotary embedding", "null"},
    {"rotary_dim", "rotary embedding on part of the head", "null"},
    {"rotary_pct", "rotary embedding on part of the head", "1.0"},
    {"scale_attn_by_inverse_layer_idx", "factor on q·k", "false"},
    {"shared_expert_intermediate_size", "an expert that sees every token", "0"},
    {"shared_intermediate_size", "an expert that sees every token", "0"},
    {"sliding_window", "sliding-window attention", "null"},
    {"sliding_window_pattern", "which layers have a sliding window", "null"},
    {"sparse_attention_config", "sparse attention", "null"},
    {"text_config", "a wrapper around another model", "null"},
    {"tie_encoder_decoder", "an encoder-decoder model", "false"},
    {"use_bidirectional_attention", "attention to later tokens", "false"},
    {"use_double_wide_mlp", "a wider MLP in some layers", "false"},
    {"use_mrope", "multimodal rotary embedding", "false"},
    {"use_parallel_residual", "attention and MLP in parallel", "false"},
    {"use_qk_norm", "norm of queries and keys", "false"},
    {"use_resampler", "a perceiver between images and text", "false"},
    {"use_sliding_window", "sliding-window attention", "false"},
    {"vision_config", "a wrapper around another model", "null"},
};

// UnknownConfig::kCheck refuses unknown fields whose names contain one of these words. They may
// change the mathematics too little for the loss of a text to show it.
constexpr std::string_view kMathWords[] = {"rope",   "rotary", "norm",  "scale", "scaling", "cap",
                                           "window", "alpha",  "limit", "gate",  "bias"};

struct ReferenceFields {
  std::string_view model_type;
  std::string_view unread;    // separated by spaces
  std::string_view defaults;  // JSON
};
constexpr ReferenceFields kReference[] = {
#include "capture/model/spec/reference_fields.inc"
};

const ReferenceFields* FindReference(std::string_view model_type) {
  const auto* found = std::ranges::find(kReference, model_type, &ReferenceFields::model_type);
  return found == std::end(kReference) ? nullptr : found;
}

}  // namespace

bool IsIrrelevantField(std::string_view name) {
  for (const char* of_tokens : {"_token_id", "_token_ids", "_token_index"})
    if (name.ends_with(of_tokens)) return true;
  return std::ranges::any_of(kIrrelevant, [&](const auto& field) { return field.name == name; });
}

const MathField* FindMathField(std::string_view name) {
  const auto* found = std::ranges::find(kMath, name, &MathField::name);
  return found == std::end(kMath) ? nullptr : found;
}

bool IsNeutral(const MathField& field, const Json& value) {
  for (std::string_view rest = field.neutral_text; !rest.empty();) {
    const size_t bar = rest.find(" | ");
    if (value == Json::parse(rest.substr(0, bar))) return true;
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 3);
  }
  return false;
}

std::string WhyUnknownRefused(std::string_view name, UnknownConfig rule) {
  if (rule == UnknownConfig::kIgnore) return "";
  constexpr std::string_view kWayOut =
      "If it does not change the model's results, give --unknown-config ignore";
  if (rule == UnknownConfig::kRefuse)
    return fmt::format("is an unknown field that may change the mathematics. {}", kWayOut);
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  for (const std::string_view word : kMathWords) {
    if (lower.find(word) == std::string::npos) continue;
    return fmt::format(
        "is an unknown field that mentions '{}', so it may change the mathematics too little to "
        "show in the loss of a text. {}",
        word, kWayOut);
  }
  return "";
}

bool IsUnreadByReference(std::string_view model_type, std::string_view field) {
  const ReferenceFields* reference = FindReference(model_type);
  if (reference == nullptr) return false;
  for (std::string_view rest = reference->unread; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == field) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

Json ReferenceDefaults(std::string_view model_type) {
  const ReferenceFields* reference = FindReference(model_type);
  if (reference == nullptr || reference->defaults.empty()) return Json::object();
  return Json::parse(reference->defaults);
}

std::string NearestField(std::string_view name,
                         const std::set<std::string, std::less<>>& also_known) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  const auto consider = [&](std::string_view candidate) {
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    if (longer - shorter >= best_distance) return;  // needs at least as many edits
    const size_t distance = EditDistance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  };
  for (const auto& known : also_known) consider(known);
  for (const auto& field : kMath) consider(field.name);
  for (const auto& field : kIrrelevant) consider(field.name);
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace oscar
