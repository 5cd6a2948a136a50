// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// StarCoder 2: norms with mean and bias, biases everywhere, an MLP of two projections without a
// gate (transformers 5, modeling_starcoder2.py). use_bias covers all projections and defaults to
// true; norms always have a bias.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadStarcoder2(ConfigReader& config) {
  DenseDecoderOptions options;
  const bool bias = config.Bool("use_bias", true);
  options.qkv_bias = options.o_bias = options.mlp_bias = bias;
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.eps_field = "norm_epsilon";
  options.default_activation = "gelu_pytorch_tanh";
  options.tied_by_default = true;
  options.rope.default_theta = 10000.0;
  config.Default("norm_epsilon", 1e-5);
  config.Require("norm_type", "layer_norm");
  config.Require("mlp_type", "default");
  config.Require("scale_attn_weights", true);
  (void)config.Find("layer_norm_epsilon");  // from GPT-2's code; norm_epsilon decides
  options.windows = ReadUniformWindows(config, config.OptionalSize("sliding_window"));
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string mlp = config.LayerPrefix(layer.layer_id) + "mlp.";
    const int64_t size = layer.mlp.intermediate_size;
    layer.mlp.gate = {};
    layer.mlp.up = Linear(mlp + "c_fc", spec.hidden_size, size, bias);
    layer.mlp.down = Linear(mlp + "c_proj", size, spec.hidden_size, bias);
  }
  return spec;
}

}  // namespace oscar
