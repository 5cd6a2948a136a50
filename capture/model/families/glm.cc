// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Zhipu's GLM models, except GLM-4.7-Flash and GLM-5, which have latent attention (deepseek.cc).
// GLM-4 has interleaved rope on a part of the head and stores gate and up as one tensor. Since
// GLM-4.5, rope is not interleaved (RopeLayout::kHalf), the first layers are dense, and experts are
// as in DeepSeek-V3.
#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

DenseDecoderOptions GlmOptions(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.fused_gate_up = true;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  options.rope.layout = RopeLayout::kInterleaved;
  return options;
}

// GLM-4-9B of 2024 (glm-4-9b-chat-hf) and GLM-Edge.
ModelSpec ReadGlm(ConfigReader& config) {
  DenseDecoderOptions options = GlmOptions(config);
  options.default_head_dim = 128;
  return ReadDenseDecoder(config, options);
}

// GLM-4 0414 has two more norms per layer. Despite its name, post_attention_layernorm is before the
// MLP; the norm after attention is post_self_attn_layernorm.
DenseDecoderOptions Glm4Options(ConfigReader& config) {
  DenseDecoderOptions options = GlmOptions(config);
  options.norms = {"input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
                   "post_mlp_layernorm"};
  return options;
}

ModelSpec ReadGlm4(ConfigReader& config) {
  DenseDecoderOptions options = Glm4Options(config);
  options.default_head_dim = 128;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

// The text part of GLM-4.1V: GLM-4 with multimodal rope, which on text equals plain rope.
ModelSpec ReadGlm4v(ConfigReader& config) {
  DenseDecoderOptions options = Glm4Options(config);
  options.rope.default_partial = 1.0;
  options.rope.text_of_mrope = true;
  return ReadDenseDecoder(config, options);
}

ModelSpec ReadGlmExperts(ConfigReader& config, const DenseDecoderOptions& options) {
  ModelSpec spec = ReadDenseDecoder(config, options);
  PutDeepSeekExperts(config, 1, ReadSigmoidExperts(config, spec.hidden_size), spec);
  return spec;
}

// GLM-4.5 to 4.7. Some sizes have QK norms.
ModelSpec ReadGlm4Moe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.qk_norm = config.Bool("use_qk_norm", false);
  options.rope.default_partial = 0.5;
  return ReadGlmExperts(config, options);
}

// The text part of GLM-4.5V and 4.6V: GLM-4.5 without QK norms.
ModelSpec ReadGlm4vMoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  options.rope.text_of_mrope = true;
  config.Require("use_qk_norm", false);
  return ReadGlmExperts(config, options);
}

}  // namespace

std::span<const Family> GlmFamilies() {
  static constexpr Family kRows[] = {
      {"glm", "GlmForCausalLM", ReadGlm},
      {"glm4", "Glm4ForCausalLM", ReadGlm4},
      {"glm4_moe", "Glm4MoeForCausalLM", ReadGlm4Moe},
      {"glm4v_moe_text", "Glm4vMoeForConditionalGeneration", ReadGlm4vMoe},
      {"glm4v_text", "Glm4vForConditionalGeneration", ReadGlm4v},
  };
  return kRows;
}

}  // namespace oscar
