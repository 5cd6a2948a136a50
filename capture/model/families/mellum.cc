// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mellum 2: Qwen 3 with experts, and some sliding layers with their own rope. Without layer_types
// no layer slides, whatever sliding_window says.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadMellum(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.default_head_dim = 128;
  options.rope.default_theta = 500000.0;
  options.rope.layer_type = "full_attention";
  config.Default("sliding_window", 1024);
  options.windows =
      ReadWindows(config, config.OptionalSize("sliding_window"), ReadNumLayers(config));
  ModelSpec spec = ReadDenseDecoder(config, options);
  const RopeOptions local{
      .default_theta = 10000.0, .layer_type = "sliding_attention", .scaled = false};
  for (LayerSpec& layer : spec.layers) {
    if (layer.attention.window)
      layer.attention.rope = ReadRope(config, layer.attention.head_dim, local).rope;
  }
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", true);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 0);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace oscar
