// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// StableLM 2 and 3B: norms with mean and bias, rope on a quarter of each head. The 12B has
// attention and MLP in parallel and a norm for each head (transformers 5, modeling_stablelm.py).
// Those norms are stored separately for each head and have no bias.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadStableLm(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("use_qkv_bias", false);
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.eps_field = "layer_norm_eps";
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.25;
  config.Default("layer_norm_eps", 1e-5);
  const bool parallel = config.Bool("use_parallel_residual", false);
  const bool head_norms = config.Bool("qk_layernorm", false);
  if (parallel) options.norms.mlp = "";
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = parallel;
    if (!head_norms) continue;
    AttentionSpec& attention = layer.attention;
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "self_attn.";
    const auto norm = [&](const char* name, int64_t heads) {
      return NormSpec{prefix + name + ".norms.#.weight", attention.head_dim, NormKind::kLayerNorm,
                      "", heads};
    };
    attention.qk_norm = true;
    attention.q_norm = norm("q_layernorm", attention.num_q_heads);
    attention.k_norm = norm("k_layernorm", attention.num_kv_heads);
  }
  return spec;
}

}  // namespace oscar
