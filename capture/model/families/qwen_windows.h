// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The sliding layers of the Qwen families, in both spellings: layer_types, or the layers from
// max_window_layers on. No layer slides unless use_sliding_window is set, whatever the other fields
// say.
#pragma once

#include "capture/model/families/dense_decoder.h"

namespace oscar {

// The window if any layer slides. If missing, it is 4096 (transformers, Qwen2Config and others).
inline std::optional<int64_t> ReadQwenWindow(ConfigReader& config, int64_t missing = 4096) {
  config.Default("sliding_window", missing);
  const std::optional<int64_t> window = config.OptionalSize("sliding_window");
  return config.Bool("use_sliding_window", false) ? window : std::nullopt;
}

// `first_sliding`: the default of max_window_layers.
inline std::vector<std::optional<int64_t>> ReadQwenWindows(ConfigReader& config,
                                                           int64_t first_sliding = 28,
                                                           int64_t missing = 4096) {
  return ReadWindows(config, ReadQwenWindow(config, missing),
                     config.OptionalCount("max_window_layers").value_or(first_sliding));
}

}  // namespace oscar
