// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Granite 3 with experts: Granite's four multipliers, experts in every layer. Trap: the softmax is
// over the chosen experts only, and the experts are fused under names of their own.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadGraniteMoe(ConfigReader& config);

ModelSpec ReadGraniteMoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.rope.default_theta = 10000.0;
  options.scale = config.OptionalPositive("attention_multiplier").value_or(1.0);
  options.dense_mlp = false;
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.embedding_multiplier = config.OptionalPositive("embedding_multiplier").value_or(1.0);
  spec.logit_multiplier = 1 / config.OptionalPositive("logits_scaling").value_or(1.0);
  const double residual = config.OptionalPositive("residual_multiplier").value_or(1.0);
  for (LayerSpec& layer : spec.layers) layer.residual_multiplier = residual;

  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"),
                                    "block_sparse_moe.router.layer");
  experts.router.score = RouterScore::kChosenSoftmax;
  experts.fused = true;
  experts.gate_up = "block_sparse_moe.input_linear.weight";
  experts.down = "block_sparse_moe.output_linear.weight";
  PutExperts(config, experts, std::vector<bool>(spec.layers.size(), true), spec);
  return spec;
}

}  // namespace oscar
