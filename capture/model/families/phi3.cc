// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: q, k, v stored as one tensor, gate and up as another; rope
// on a part of the head, longrope with one list of factors for short sequences and one for long.
// Which list applies is decided by the length of each sequence (transformers 5,
// longrope_frequency_update), so a short document and a long one see different frequencies.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadPhi3(ConfigReader& config) {
  DenseDecoderOptions options;
  // What Phi-4-mini's own code could do besides, and does not.
  config.Require("full_attn_mod", 1);
  config.Require("interpolate_factor", 1);
  config.Require("lm_head_bias", false);
  options.fused_qkv = options.fused_gate_up = true;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 1.0;
  options.windows = ReadUniformWindows(config, config.OptionalSize("sliding_window"));
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
