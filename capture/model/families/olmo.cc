// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OLMo 1: norms without weights, which subtract the mean. Their epsilon is 1e-5 and not in the
// configuration (transformers 5, OlmoLayerNorm).
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadOlmo(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.norm = NormKind::kLayerNorm;
  options.norm_weight = false;
  options.rope.default_theta = 10000.0;
  config.Override("rms_norm_eps", 1e-5);
  const double clamp = config.OptionalPositive("clip_qkv").value_or(0.0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) layer.attention.clamp = clamp;
  return spec;
}

}  // namespace oscar
