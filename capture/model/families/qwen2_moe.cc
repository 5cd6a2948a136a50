// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Qwen1.5-MoE and Qwen2-57B-A14B: biases on q, k, v, and a gated shared expert. If layers slide,
// they are every second one below max_window_layers, unlike in the other Qwen families.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadQwen2Moe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("qkv_bias", true);
  if (config.Bool("use_sliding_window", false)) {
    const int64_t below = config.OptionalCount("max_window_layers").value_or(28);
    options.windows = WindowsOf(
        config,
        ReadLayerTypes(config, {"full_attention", "sliding_attention"},
                       [&](int64_t i) {
                         return i % 2 == 0 && i < below ? "sliding_attention" : "full_attention";
                       }),
        config.OptionalSize("sliding_window"));
  } else {  // transformers then writes a window of 0
    for (const char* key : {"sliding_window", "max_window_layers", "layer_types"})
      (void)config.Find(key);
  }
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", false);
  NameSharedExpert("mlp.shared_expert.", config.Size("shared_expert_intermediate_size"), experts);
  experts.shared_gate = Linear("mlp.shared_expert_gate", spec.hidden_size, 1);
  const std::vector<bool> sparse = ReadQwenSparseLayers(config);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace oscar
