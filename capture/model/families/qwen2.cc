// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Qwen2, Qwen2.5 and their distillations: biases on q, k, v but not o. Every release has
// sliding_window and max_window_layers, which have no effect unless use_sliding_window is set.
#include "capture/model/families/dense_decoder.h"
#include "capture/model/families/qwen_windows.h"

namespace oscar {

ModelSpec ReadQwen2(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = true;
  options.windows = ReadQwenWindows(config);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
