// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OLMo 2: norms on the outputs of attention and MLP, none on their inputs, and one norm over all
// heads of the queries, one over all of the keys. A norm over 64 heads at once is not 64 norms.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadOlmo2(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.norms = PostNorms();
  options.rope.default_theta = 10000.0;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
