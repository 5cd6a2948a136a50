// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Command R7B and A (cohere2): attention and MLP in parallel after one norm that subtracts the
// mean, three sliding layers with rope in pairs of neighbours per full one without rope, a factor
// on logits (transformers 5, modeling_cohere2.py). Full layers have no position embedding.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadCohere2(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.norm = NormKind::kLayerNorm;
  options.norms = {"input_layernorm", "", "", ""};
  options.eps_field = "layer_norm_eps";
  options.tied_by_default = true;
  options.rope.default_theta = 10000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  config.Default("layer_norm_eps", 1e-5);
  config.Default("sliding_window", 4096);
  // These fields of releases describe the only arrangement that was ever built.
  config.Require("use_parallel_block", true);
  config.Require("use_gated_activation", true);
  config.Require("position_embedding_type", "rope_gptj");
  config.Require("order_of_interleaved_layers", "local_attn_first");
  (void)config.Bool("use_embedding_sharing", true);  // tie_word_embeddings decides
  (void)config.Find("_sliding_window_pattern");
  const int64_t pattern = config.OptionalSize("sliding_window_pattern").value_or(4);
  config.Require("layer_switch", pattern);
  options.windows = ReadPatternWindows(config, config.OptionalSize("sliding_window"), pattern);
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.logit_multiplier = config.OptionalPositive("logit_scale").value_or(0.0625);
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = true;
    if (!layer.attention.window) layer.attention.rope = {RopeKind::kNone};
  }
  return spec;
}

}  // namespace oscar
