// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arcee (AFM-4.5B): Llama with an MLP of two projections around a squared ReLU. There is no
// gate_proj, although the sizes are named as in Llama.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadArcee(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_activation = "relu2";
  options.gated_mlp = false;
  options.rope.default_theta = 10000.0;
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
