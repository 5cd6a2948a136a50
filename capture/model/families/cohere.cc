// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Cohere's models: attention and MLP run in parallel after one norm, which subtracts the mean.
// Logits are multiplied by a factor, and rope is interleaved (transformers 5, modeling_cohere.py,
// modeling_cohere2.py).
#include "capture/model/families/dense_decoder.h"

namespace oscar {
namespace {

DenseDecoderOptions CohereOptions(ConfigReader& config, double default_theta) {
  DenseDecoderOptions options = LlamaOptions(config, default_theta);
  options.norm = NormKind::kLayerNorm;
  options.norms = {"input_layernorm", "", "", ""};
  options.eps_field = "layer_norm_eps";
  options.tied_by_default = true;
  options.rope.layout = RopeLayout::kInterleaved;
  config.Default("layer_norm_eps", 1e-5);
  return options;
}

ModelSpec ReadCohereLayers(ConfigReader& config, const DenseDecoderOptions& options) {
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.logit_multiplier = config.OptionalPositive("logit_scale").value_or(0.0625);
  for (LayerSpec& layer : spec.layers) layer.parallel = true;
  return spec;
}

// Command R, R+ and Aya. With use_qk_norm, each head has a norm with its own weights.
ModelSpec ReadCohere(ConfigReader& config) {
  DenseDecoderOptions options = CohereOptions(config, 500000.0);
  options.qk_norm = config.Bool("use_qk_norm", false);
  // Releases repeat the tokenizer's maximum length here.
  config.Ignore({"model_max_length"});
  ModelSpec spec = ReadCohereLayers(config, options);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm.heads = layer.attention.num_q_heads;
    layer.attention.k_norm.heads = layer.attention.num_kv_heads;
  }
  return spec;
}

// Command R7B and A: three sliding-window layers with rope per full-attention layer, which has no
// position embedding.
ModelSpec ReadCohere2(ConfigReader& config) {
  DenseDecoderOptions options = CohereOptions(config, 10000.0);
  // All releases have these values; no other variant is implemented.
  config.Require("use_parallel_block", true);
  config.Require("use_gated_activation", true);
  config.Require("position_embedding_type", "rope_gptj");
  config.Require("order_of_interleaved_layers", "local_attn_first");
  (void)config.Bool("use_embedding_sharing", true);  // tie_word_embeddings decides
  config.Ignore({"_sliding_window_pattern"});
  const int64_t pattern = config.OptionalSize("sliding_window_pattern").value_or(4);
  config.Require("layer_switch", pattern);
  options.windows = ReadPatternWindows(config, ReadWindow(config, 4096), pattern);
  ModelSpec spec = ReadCohereLayers(config, options);
  for (LayerSpec& layer : spec.layers)
    if (!layer.attention.window) layer.attention.rope = {RopeKind::kNone};
  return spec;
}

}  // namespace

std::span<const Family> CohereFamilies() {
  static constexpr Family kRows[] = {
      {"cohere", "CohereForCausalLM", ReadCohere},
      {"cohere2", "Cohere2ForCausalLM", ReadCohere2},
  };
  return kRows;
}

}  // namespace oscar
