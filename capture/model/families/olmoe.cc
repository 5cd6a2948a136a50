// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OLMoE: experts in every layer, queries and keys normalized over all heads together.
// intermediate_size is that of an expert, and the weights of the chosen experts only sum to 1 if
// norm_topk_prob is set.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadOlmoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.rope.default_theta = 10000.0;
  options.dense_mlp = false;
  const double clamp = config.OptionalPositive("clip_qkv").value_or(0.0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) layer.attention.clamp = clamp;
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", false);
  PutNamedExperts(config, {}, std::vector<bool>(spec.layers.size(), true), experts, spec);
  return spec;
}

}  // namespace oscar
