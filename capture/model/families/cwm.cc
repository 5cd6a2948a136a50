// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Code World Model: Llama with three sliding layers per full one. The first layer is a full one,
// and a configuration without any rope setting means llama3 scaling by 16 (transformers 5,
// CwmConfig).
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadCwm(ConfigReader& config) {
  constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";
  DenseDecoderOptions options;
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 1e6;
  if (!config.Has("rope_scaling")) {
    config.Default("rope_parameters", {{"rope_type", "llama3"},
                                       {"factor", 16.0},
                                       {"original_max_position_embeddings", 8192},
                                       {"low_freq_factor", 1.0},
                                       {"high_freq_factor", 4.0}});
  }
  config.Default("sliding_window", 8192);
  const auto every_fourth = [&](int64_t layer) { return layer % 4 == 0 ? kFull : kSliding; };
  options.windows = WindowsOf(config, ReadLayerTypes(config, {kFull, kSliding}, every_fourth),
                              config.OptionalSize("sliding_window"));
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
