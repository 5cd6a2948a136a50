// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ministral 3 and other late Mistral models: no biases, yarn, and queries that grow with their
// position after the original context (transformers 5, modeling_ministral3.py,
// get_llama_4_attn_scale). The factor is only on queries, after rope, so it enters their
// covariance: long samples weigh more.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadMinistral3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.default_head_dim = 128;
  options.rope.position_scaling = true;
  options.windows = ReadUniformWindows(config, config.OptionalSize("sliding_window"));
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
