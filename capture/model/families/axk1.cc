// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A.X K1: DeepSeek-V3 with an additional norm after the experts. Dense layers do not have it.
#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadAxk1(ConfigReader& config) {
  config.Default("routed_scaling_factor", 2.5);
  ModelSpec spec = ReadLatentDecoder(config, 1);
  for (LayerSpec& layer : spec.layers) {
    if (!layer.experts) continue;
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    const std::string inner = prefix + "mlp.post_mlp_layernorm.weight";
    layer.post_mlp_norm = {config.Stores(inner) ? inner : prefix + "post_mlp_layernorm.weight",
                           spec.hidden_size};
  }
  return spec;
}

}  // namespace oscar
