// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text parts of GLM-4.1V (glm4v) and of GLM-4.5V and 4.6V (glm4v_moe): GLM-4 and GLM-4.5, whose
// multimodal rope is plain rope on text. The first rotates pairs of neighbours and always has
// biases on q, k and v; the second rotates halves and has no norms of queries and keys.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadGlm4v(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.fused_gate_up = true;
  options.norms = {"input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
                   "post_mlp_layernorm"};
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 1.0;
  options.rope.layout = RopeLayout::kInterleaved;
  options.rope.text_of_mrope = true;
  return ReadDenseDecoder(config, options);
}

ModelSpec ReadGlm4vMoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  options.rope.text_of_mrope = true;
  config.Require("use_qk_norm", false);
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  PutNamedExperts(config, {}, sparse, experts, spec);
  SkipPredictionLayers(config, spec);
  return spec;
}

}  // namespace oscar
