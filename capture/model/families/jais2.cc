// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Jais 2: norms with mean and bias, an MLP without a gate around a squared ReLU (transformers 5,
// modeling_jais2.py). A missing attention_bias or mlp_bias means true.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadJais2(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", true);
  options.mlp_bias = config.Bool("mlp_bias", true);
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.eps_field = "layer_norm_eps";
  options.default_activation = "relu2";
  options.gated_mlp = false;
  options.rope.default_theta = 10000.0;
  config.Default("layer_norm_eps", 1e-5);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
