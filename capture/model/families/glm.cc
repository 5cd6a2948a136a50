// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GLM-4-9B of 2024 (glm-4-9b-chat-hf) and GLM-Edge: gate and up stored as one tensor, rope in pairs
// of neighbours on half of each head. Its successor, glm4, has two more norms in each layer.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadGlm(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.fused_gate_up = true;
  options.default_head_dim = 128;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  options.rope.layout = RopeLayout::kInterleaved;
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
