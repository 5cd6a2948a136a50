// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// ERNIE 4.5 dense: Llama with one field for all biases and rope in pairs of neighbours over the
// whole head (transformers 5, modeling_ernie4_5.py). The pairs are neighbours although there is no
// partial_rotary_factor, which accompanies such pairs elsewhere.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadErnie45(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = options.mlp_bias = config.Bool("use_bias", false);
  options.default_head_dim = 128;
  options.tied_by_default = true;
  options.rope.default_theta = 500000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
