// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Granite 3 dense: Llama with four multipliers: on embeddings, on q·k, on the output of each half
// of a layer, and a divisor of logits. attention_multiplier replaces 1 / sqrt(head_dim), and is 1
// if it is missing.
#include "capture/model/families/granite.h"

namespace oscar {

ModelSpec ReadGranite(ConfigReader& config) {
  DenseDecoderOptions options;
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadGraniteLayers(config, options);
}

ModelSpec ReadGraniteLayers(ConfigReader& config, DenseDecoderOptions options) {
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.rope.default_theta = 10000.0;
  options.scale = config.OptionalPositive("attention_multiplier").value_or(1.0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.embedding_multiplier = config.OptionalPositive("embedding_multiplier").value_or(1.0);
  spec.logit_multiplier = 1 / config.OptionalPositive("logits_scaling").value_or(1.0);
  const double residual = config.OptionalPositive("residual_multiplier").value_or(1.0);
  for (LayerSpec& layer : spec.layers) layer.residual_multiplier = residual;
  return spec;
}

}  // namespace oscar
