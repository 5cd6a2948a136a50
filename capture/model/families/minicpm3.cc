// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// MiniCPM3: latent attention in a dense model, factors on embeddings, on the output of each layer
// and on logits. Pairs that rotate are halves apart, unlike in DeepSeek; v_head_dim may be missing.
#include <cmath>

#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadMiniCpm3(ConfigReader& config) {
  const int64_t hidden = config.Size("hidden_size");
  config.Default("rope_interleave", false);
  config.Default("v_head_dim", hidden / config.Size("num_attention_heads"));
  config.Require("mlp_bias", false);
  ModelSpec spec = ReadLatentLayers(config, {.tied_by_default = true});
  spec.embedding_multiplier = config.OptionalPositive("scale_emb").value_or(12.0);
  const double layers = static_cast<double>(spec.layers.size());
  config.Default("scale_depth", 1.4);
  const double depth = config.OptionalPositive("scale_depth").value_or(std::sqrt(layers));
  for (LayerSpec& layer : spec.layers) layer.residual_multiplier = depth / std::sqrt(layers);
  config.Default("dim_model_base", 256);
  const int64_t base = config.OptionalSize("dim_model_base").value_or(hidden);
  spec.logit_multiplier = static_cast<double>(base) / static_cast<double>(hidden);
  return spec;
}

}  // namespace oscar
