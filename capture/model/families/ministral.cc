// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ministral 8B of 2024: Mistral whose layers slide or not, according to layer_types. Without
// layer_types every layer slides if there is a sliding_window, and a missing one means 4096.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadMinistral(ConfigReader& config) {
  DenseDecoderOptions options;
  options.rope.default_theta = 10000.0;
  config.Default("sliding_window", 4096);
  options.windows = ReadWindows(config, config.OptionalSize("sliding_window"), 0);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
