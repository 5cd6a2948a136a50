// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// EXAONE 4: norms on what leaves attention and MLP, norms of each query and key head, three sliding
// layers to a full one (transformers 5, modeling_exaone4.py). Where some layers slide, the
// full ones have no rope; where none does, all have.
#include <fmt/format.h>

#include "capture/model/families/exaone.h"

namespace oscar {

namespace {

// "LLLG", or every n-th layer is global.
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

}  // namespace oscar
