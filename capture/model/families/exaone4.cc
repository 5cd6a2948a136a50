// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// EXAONE 4: norms on the outputs of attention and MLP, norms of each query and key head, three
// sliding layers per full one (transformers 5, modeling_exaone4.py). If some layers slide, the full
// ones have no rope; if none does, all have rope.
#include <fmt/format.h>

#include "capture/model/families/exaone.h"

namespace oscar {

namespace {

// Returns "LLLG", or a pattern in which every n-th layer is global.
std::string ReadPattern(ConfigReader& config) {
  const Json* value = config.Find("sliding_window_pattern");
  if (value != nullptr && value->is_string()) {
    const std::string letters = value->get<std::string>();
    if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos)
      config.Fail("sliding_window_pattern", "must consist of L and G");
    return letters;
  }
  const int64_t every = config.OptionalCount("sliding_window_pattern").value_or(4);
  if (every > 4096) config.Fail("sliding_window_pattern", "must lie in 0 .. 4096");
  if (every == 0) return "G";
  return std::string(static_cast<size_t>(every - 1), 'L') + "G";
}

}  // namespace

std::vector<std::optional<int64_t>> ReadExaoneWindows(ConfigReader& config) {
  config.Default("sliding_window", 4096);
  const std::optional<int64_t> window = config.OptionalSize("sliding_window");
  const std::string pattern = ReadPattern(config);
  const auto otherwise = [&](int64_t layer) {
    const char kind = pattern[static_cast<size_t>(layer) % pattern.size()];
    return window && kind == 'L' ? "sliding_attention" : "full_attention";
  };
  return WindowsOf(
      config, ReadLayerTypes(config, {"full_attention", "sliding_attention"}, otherwise), window);
}

ModelSpec ReadExaone4(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qk_norm = true;
  options.norms = PostNorms();
  options.rope.default_theta = 10000.0;
  options.windows = ReadExaoneWindows(config);
  const bool slides = config.OptionalSize("sliding_window").has_value();
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    if (slides && !layer.attention.window) layer.attention.rope = {RopeKind::kNone};
  }
  return spec;
}

// EXAONE 3: Llama with other names of fields and tensors (transformers 5 runs it as Llama).
ModelSpec ReadExaone(ConfigReader& config) {
  config.SecondName("num_hidden_layers", "num_layers");
  config.SecondName("rms_norm_eps", "layer_norm_epsilon");
  config.SecondName("hidden_act", "activation_function");
  config.Default("rms_norm_eps", 1e-5);
  (void)config.Find("embed_dropout");  // in training only
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.rope.default_theta = 500000.0;
  if (config.StoresPrefix(config.prefix() + "embed_tokens."))
    return ReadDenseDecoder(config, options);
  config.NameLayers("transformer.", "h.");
  options.norms = {"ln_1", "", "ln_2", ""};
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const auto rename = [&](LinearSpec& linear, const char* name) {
      linear = Linear(config.LayerPrefix(layer.layer_id) + name, linear.in_features,
                      linear.out_features, !linear.bias.empty());
    };
    rename(layer.attention.q, "attn.attention.q_proj");
    rename(layer.attention.k, "attn.attention.k_proj");
    rename(layer.attention.v, "attn.attention.v_proj");
    rename(layer.attention.o, "attn.attention.out_proj");
    rename(layer.mlp.gate, "mlp.c_fc_0");
    rename(layer.mlp.up, "mlp.c_fc_1");
    rename(layer.mlp.down, "mlp.c_proj");
  }
  NameEnds("transformer.wte", "transformer.ln_f", spec);
  return spec;
}

}  // namespace oscar
