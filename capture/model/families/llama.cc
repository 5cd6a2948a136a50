// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Llama 1 to 3.x and what keeps its name. Biases on all four attention projections or none, on all
// three of the MLP or none. Releases before Llama 3 have no rope_theta in their config; it
// was 10000.
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

}  // namespace oscar
