// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GLM-4 0414 (glm4): four plain norms, biases on q, k, v, gate and up stored as one, and rope in
// pairs of neighbours on a part of the head, by default half. The norm called
// post_attention_layernorm is before the MLP; the one after attention is
// post_self_attn_layernorm.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadGlm4(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.fused_gate_up = true;
  options.default_head_dim = 128;
  options.norms = {"input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
                   "post_mlp_layernorm"};
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  options.rope.layout = RopeLayout::kInterleaved;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
