// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Solar Open: Llama's attention, DeepSeek's experts in every layer. Releases have intermediate_size
// and first_k_dense_replace, but no layer is dense.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadSolarOpen(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 1e6;
  options.rope.default_partial = 1.0;
  options.dense_mlp = false;
  config.Require("use_qk_norm", false);
  config.Require("first_k_dense_replace", 0);
  (void)config.Find("intermediate_size");
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  PutNamedExperts(config, {}, std::vector<bool>(spec.layers.size(), true), experts, spec);
  return spec;
}

}  // namespace oscar
