// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Command R and R+, Aya: attention and MLP in parallel after one norm that subtracts the mean, a
// factor on logits, rope in pairs of neighbours (transformers 5, modeling_cohere.py). use_qk_norm
// gives each head a norm with its own weights.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadCohere(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = config.Bool("use_qk_norm", false);
  options.norm = NormKind::kLayerNorm;
  options.norms = {"input_layernorm", "", "", ""};
  options.eps_field = "layer_norm_eps";
  options.tied_by_default = true;
  options.rope.default_theta = 500000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  config.Default("layer_norm_eps", 1e-5);
  // Releases state the longest context twice; this one belongs to the tokenizer.
  (void)config.Find("model_max_length");
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.logit_multiplier = config.OptionalPositive("logit_scale").value_or(0.0625);
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = true;
    layer.attention.q_norm.heads = layer.attention.num_q_heads;
    layer.attention.k_norm.heads = layer.attention.num_kv_heads;
  }
  return spec;
}

}  // namespace oscar
