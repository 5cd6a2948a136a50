// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// FlexOlmo: OLMo 2 with experts in every layer (transformers 5, modeling_flex_olmo.py). The norms
// are after attention and experts; there are none before them.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadFlexOlmo(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.norms = PostNorms();
  options.rope.default_theta = 500000.0;
  options.dense_mlp = false;
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", false);
  PutNamedExperts(config, {}, std::vector<bool>(spec.layers.size(), true), experts, spec);
  return spec;
}

}  // namespace oscar
