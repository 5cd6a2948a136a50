// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Seed-OSS: Llama with biases on q, k, v by default and a separate field for the bias of o
// (transformers 5, modeling_seed_oss.py). A missing attention_bias means true.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadSeedOss(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.o_bias = config.Bool("attention_out_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 10000.0;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
