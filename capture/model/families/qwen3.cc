// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Qwen3 dense: queries and keys are normalized per head before the rotary embedding. Heads times
// head_dim is not hidden_size, and a missing head_dim means 128 (transformers' Qwen3Config).
#include "capture/model/families/dense_decoder.h"
#include "capture/model/families/qwen_windows.h"

namespace oscar {

ModelSpec ReadQwen3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.default_head_dim = 128;
  options.windows = ReadQwenWindows(config);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
