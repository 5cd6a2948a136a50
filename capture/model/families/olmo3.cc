// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OLMo 3: OLMo 2 with three sliding layers per full one (transformers 5, modeling_olmo3.py). The
// old rope_scaling applies only to the full layers.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadOlmo3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.norms = PostNorms();
  options.rope.default_theta = 500000.0;
  options.rope.layer_type = "full_attention";
  config.Default("sliding_window", 4096);
  options.windows = ReadPatternWindows(config, config.OptionalSize("sliding_window"), 4);
  ModelSpec spec = ReadDenseDecoder(config, options);
  const RopeOptions local{
      .default_theta = 500000.0, .layer_type = "sliding_attention", .scaled = false};
  const RopeSpec local_rope = ReadRope(config, spec.layers[0].attention.head_dim, local).rope;
  for (LayerSpec& layer : spec.layers) {
    if (layer.attention.window) layer.attention.rope = local_rope;
  }
  return spec;
}

}  // namespace oscar
