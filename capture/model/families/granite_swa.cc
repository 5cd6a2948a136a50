// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Granite with three sliding layers per full one and a sink for each head, dense and with experts
// (transformers 5, modeling_granite_swa.py). The first layer is a full one, and layer_rope_theta
// gives each layer its own base, 0 for no rope at all.
#include <fmt/format.h>

#include "capture/model/families/granite.h"

namespace oscar {

void PutSlidingLayers(ConfigReader& config, ModelSpec& spec) {
  constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";
  config.Default("sliding_window", 128);
  const auto every_fourth = [&](int64_t layer) { return layer % 4 == 0 ? kFull : kSliding; };
  const auto windows = WindowsOf(config, ReadLayerTypes(config, {kFull, kSliding}, every_fourth),
                                 config.OptionalSize("sliding_window"));
  const Json* thetas = config.Find("layer_rope_theta");
  if (thetas != nullptr && (!thetas->is_array() || thetas->size() != spec.layers.size())) {
    config.Fail("layer_rope_theta",
                fmt::format("must be a list of {} numbers", spec.layers.size()));
  }
  for (LayerSpec& layer : spec.layers) {
    const auto i = static_cast<size_t>(layer.layer_id);
    layer.attention.window = windows[i];
    layer.attention.sinks = config.LayerPrefix(layer.layer_id) + "self_attn.sinks";
    if (thetas == nullptr) continue;
    const Json& theta = (*thetas)[i];
    if (!theta.is_null() && (!theta.is_number() || theta < 0))
      config.Fail("layer_rope_theta", "must be a list of numbers from 0");
    if (theta.is_null() || theta == 0) {
      layer.attention.rope = {RopeKind::kNone};
    } else {
      layer.attention.rope.theta = theta.get<double>();
    }
  }
}

ModelSpec ReadGraniteSwa(ConfigReader& config) {
  DenseDecoderOptions options;
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.tied_by_default = true;
  ModelSpec spec = ReadGraniteLayers(config, options);
  PutSlidingLayers(config, spec);
  return spec;
}

ModelSpec ReadGraniteMoeSwa(ConfigReader& config) {
  ModelSpec spec = ReadGraniteMoeShared(config);
  PutSlidingLayers(config, spec);
  return spec;
}

}  // namespace oscar
