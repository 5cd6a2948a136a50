// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: q, k, v stored as one tensor, gate and up as another; rope
// on a part of the head, longrope with one list of factors for short sequences and one for long.
// The length of each sequence decides which list applies (transformers 5,
// longrope_frequency_update), so a short and a long document see different frequencies.
// Phi-4-multimodal, as transformers stores it, contains the same model among its other modalities.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadPhi3(ConfigReader& config) {
  DenseDecoderOptions options;
  // Options of Phi-4-mini's own code that no release uses.
  config.Require("full_attn_mod", 1);
  config.Require("interpolate_factor", 1);
  config.Require("lm_head_bias", false);
  options.fused_qkv = options.fused_gate_up = true;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 1.0;
  options.windows = ReadUniformWindows(config, config.OptionalSize("sliding_window"));
  return ReadDenseDecoder(config, options);
}

ModelSpec ReadPhi4Multimodal(ConfigReader& config) {
  for (const char* key : {"audio_config", "vision_config"}) (void)config.Find(key);
  ModelSpec spec = ReadPhi3(config);
  spec.skipped_prefixes.push_back("model.embed_tokens_extend.");
  return spec;
}

}  // namespace oscar
