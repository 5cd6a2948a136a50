// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The sliding layers of the Qwen families, in either spelling: layer_types, or the layers from
// max_window_layers on. Trap: nothing slides unless use_sliding_window is set, whatever the other
// fields say.
#pragma once

#include "capture/model/families/dense_decoder.h"

namespace oscar {

inline std::vector<std::optional<int64_t>> ReadQwenWindows(ConfigReader& config) {
  const bool slides = config.Bool("use_sliding_window", false);
  std::optional<int64_t> window = config.OptionalSize("sliding_window");
  if (slides && !window)
    config.Fail("sliding_window", "is missing although use_sliding_window is set");
  if (!slides) window = std::nullopt;
  const bool layers_are_listed = config.Find("layer_types") != nullptr;
  const auto first_sliding = config.OptionalCount("max_window_layers");
  if (slides && !layers_are_listed && !first_sliding) {
    config.Fail("max_window_layers",
                "is missing although use_sliding_window is set and there are no layer_types");
  }
  return ReadWindows(config, window, first_sliding.value_or(0));
}

}  // namespace oscar
