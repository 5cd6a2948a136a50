// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Phi-1, Phi-1.5 and Phi-2: attention and MLP in parallel after one norm with mean and bias, an MLP
// without a gate, rope on a part of the head (transformers 5, modeling_phi.py). Everything has a
// bias, even the output head.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadPhi(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = true;
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.norms = {"input_layernorm", "", "", ""};
  options.qk_norm = config.Bool("qk_layernorm", false);
  options.q_norm_name = "q_layernorm";
  options.k_norm_name = "k_layernorm";
  options.eps_field = "layer_norm_eps";
  options.default_activation = "gelu_new";
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  config.Default("layer_norm_eps", 1e-5);
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    const int64_t size = layer.mlp.intermediate_size;
    layer.parallel = true;
    layer.attention.o =
        Linear(prefix + "self_attn.dense", layer.attention.o.in_features, spec.hidden_size, true);
    layer.mlp.gate = {};
    layer.mlp.up = Linear(prefix + "mlp.fc1", spec.hidden_size, size, true);
    layer.mlp.down = Linear(prefix + "mlp.fc2", size, spec.hidden_size, true);
  }
  spec.final_norm.weight = config.prefix() + "final_layernorm.weight";
  spec.final_norm.bias = config.prefix() + "final_layernorm.bias";
  spec.head.bias = "lm_head.bias";
  return spec;
}

}  // namespace oscar
