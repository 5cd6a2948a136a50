// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Qwen3 with experts (30B-A3B, 235B-A22B). Traps: a missing norm_topk_prob means false
// (transformers' Qwen3MoeConfig), although every release sets it. If use_sliding_window is set,
// every layer slides, unlike in the other Qwen families: max_window_layers, which releases have, is
// ignored.
#include "capture/model/families/experts_config.h"
#include "capture/model/families/qwen_windows.h"

namespace oscar {

ModelSpec ReadQwen3Moe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.windows = ReadUniformWindows(config, ReadQwenWindow(config));
  (void)config.Find("max_window_layers");
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", false);
  const std::vector<bool> sparse = ReadQwenSparseLayers(config);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace oscar
