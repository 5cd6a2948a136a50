// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Apertus: an MLP without a gate whose activation, xIELU, has trained parameters in each layer;
// norms of queries and keys. A configuration without any rope setting means llama3 scaling
// (transformers 5, ApertusConfig).
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadApertus(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.norms = {"attention_layernorm", "", "feedforward_layernorm", ""};
  options.gated_mlp = false;
  options.rope.default_theta = 12e6;
  if (!config.Has("rope_scaling")) {
    config.Default("rope_parameters", {{"rope_type", "llama3"},
                                       {"factor", 8.0},
                                       {"original_max_position_embeddings", 8192},
                                       {"low_freq_factor", 1.0},
                                       {"high_freq_factor", 4.0}});
  }
  config.Require("qk_norm", true);
  config.Require("post_norm", false);
  config.Require("mlp_bias", false);
  const bool xielu = config.String("hidden_act", "xielu") == "xielu";
  if (xielu) config.Override("hidden_act", "silu");  // replaced below
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (!xielu) return spec;
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "mlp.act_fn.";
    const auto stored = [&](const char* name) {
      return !config.knows_names() || config.Stores(prefix + name) ? prefix + name : std::string();
    };
    layer.mlp.activation = Activation::kXielu;
    layer.mlp.xielu = {prefix + "alpha_p", prefix + "alpha_n", stored("beta"), stored("eps")};
  }
  return spec;
}

}  // namespace oscar
