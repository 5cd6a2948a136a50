// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Llama 1 to 3.x and models of the same name. Biases are on all four attention projections or none,
// and on all three of the MLP or none. Releases before Llama 3 have no rope_theta in their config;
// it was 10000. InternLM 3 is the same with other names of its biases.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadLlama(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.rope.default_theta = 10000.0;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

ModelSpec ReadInternLm3(ConfigReader& config) {
  config.SecondName("attention_bias", "qkv_bias");
  config.SecondName("mlp_bias", "bias");
  // The release's code uses `bias` for the output projection, transformers uses `qkv_bias`.
  if (config.Bool("mlp_bias", false) != config.Bool("attention_bias", false))
    config.Fail("mlp_bias", "is not implemented. Supported: the value of attention_bias");
  config.Default("head_dim", 128);
  config.Default("rms_norm_eps", 1e-5);
  return ReadLlama(config);
}

}  // namespace oscar
