// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SmolLM3: Llama with layers without position embedding, by default every fourth. no_rope_layers[i]
// is 1 if layer i HAS rope.
#include <fmt/format.h>

#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadSmolLm3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.rope.default_theta = 2000000.0;
  options.tied_by_default = true;
  const int64_t num_layers = ReadNumLayers(config);
  const int64_t interval = config.OptionalSize("no_rope_layer_interval").value_or(4);
  const Json* listed = config.Find("no_rope_layers");
  if (listed != nullptr &&
      (!listed->is_array() || listed->size() != static_cast<size_t>(num_layers))) {
    config.Fail("no_rope_layers",
                fmt::format("must be a list of num_hidden_layers = {} numbers", num_layers));
  }
  std::vector<bool> turns;
  for (int64_t i = 0; i < num_layers; ++i) {
    if (listed == nullptr) {
      turns.push_back((i + 1) % interval != 0);
      continue;
    }
    const Json& flag = (*listed)[static_cast<size_t>(i)];
    if (flag != 0 && flag != 1) config.Fail("no_rope_layers", "must be a list of 0 and 1");
    turns.push_back(flag == 1);
  }
  (void)config.Find("max_window_layers");  // left over from Qwen's code; layer_types decides
  // Layers without rope slide if any layer does.
  std::optional<int64_t> window = config.OptionalSize("sliding_window");
  if (!config.Bool("use_sliding_window", false)) window = std::nullopt;
  const auto otherwise = [&](int64_t layer) {
    return window && !turns[static_cast<size_t>(layer)] ? "sliding_attention" : "full_attention";
  };
  options.windows = WindowsOf(
      config, ReadLayerTypes(config, {"full_attention", "sliding_attention"}, otherwise), window);
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    if (!turns[static_cast<size_t>(layer.layer_id)]) layer.attention.rope = {RopeKind::kNone};
  }
  return spec;
}

}  // namespace oscar
