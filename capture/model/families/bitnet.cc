// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// BitNet b1.58 in plain weights: an additional norm inside attention, over all heads before the
// output projection, and one inside the MLP before its last projection. Releases whose weights are
// ternary, or become so at run time (quantization_config), are refused as a weight format.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadBitNet(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.default_activation = "relu2";
  options.tied_by_default = true;
  options.rope.default_theta = 500000.0;
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    layer.attention.out_norm = {prefix + "self_attn.attn_sub_norm.weight",
                                layer.attention.o.in_features};
    layer.mlp.inner_norm = {prefix + "mlp.ffn_sub_norm.weight", layer.mlp.intermediate_size};
  }
  return spec;
}

}  // namespace oscar
