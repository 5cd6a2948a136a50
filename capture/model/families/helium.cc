// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Helium: Llama with rope in pairs of neighbours. Its epsilon is 1e-8, which float16 would round to
// zero.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadHelium(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 100000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
