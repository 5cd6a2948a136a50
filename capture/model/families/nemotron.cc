// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Nemotron-4 and Minitron: norms that subtract the mean and multiply by 1 + w, an MLP without a
// gate around a squared ReLU, rope on half of each head (transformers 5, modeling_nemotron.py).
// Norms always have biases, whatever attention_bias and mlp_bias say.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadNemotron(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.norm = NormKind::kLayerNormOnePlus;
  options.norm_bias = true;
  options.eps_field = "norm_eps";
  options.default_activation = "relu2";
  options.gated_mlp = false;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  config.Default("norm_eps", 1e-5);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
