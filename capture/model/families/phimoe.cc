// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Phi-3.5-MoE and Phi-mini-MoE: norms with mean and bias, two experts for each token, each weighted
// by a softmax over the experts near it (SparseMixer, arXiv 2409.12136). The factors on cosines are
// named short_mscale and long_mscale. Unlike Microsoft's code, transformers uses the short factors
// for long sequences too, so longer sequences are refused.
#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadPhiMoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.rope.default_theta = 1e6;
  options.rope.mscales = true;
  options.dense_mlp = false;
  options.windows = ReadUniformWindows(config, config.OptionalSize("sliding_window"));
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (config.Bool("lm_head_bias", false)) spec.head.bias = "lm_head.bias";
  const RopeSpec& rope = spec.layers[0].attention.rope;
  if (rope.kind == RopeKind::kLongRope && rope.original_max_positions < spec.max_positions) {
    spec.max_positions = rope.original_max_positions;
    spec.positions_limit =
        "original_max_position_embeddings: beyond it implementations of this family disagree";
  }
  (void)config.Find("input_jitter_noise");  // for training
  const bool released = config.StoresPrefix(config.LayerPrefix(0) + "block_sparse_moe.");
  const std::string block = released || !config.knows_names() ? "block_sparse_moe." : "mlp.";
  ExpertsSpec experts = ReadExperts(
      config, spec.hidden_size, config.Size("intermediate_size"),
      block + (config.StoresPrefix(config.LayerPrefix(0) + block + "router.") ? "router" : "gate"));
  config.Require("num_experts_per_tok", 2);
  experts.router.score = RouterScore::kSparseMixer;
  experts.router.mixer_distance = 2 * config.OptionalNumber("router_jitter_noise").value_or(0.01);
  NameExperts(config, 0,
              {.separate = block + "experts.",
               .gate = "w1.weight",
               .up = "w3.weight",
               .down = "w2.weight",
               .fused_gate_up = block + "experts.gate_up_proj",
               .fused_down = block + "experts.down_proj"},
              experts);
  PutExperts(config, experts, std::vector<bool>(spec.layers.size(), true), spec);
  return spec;
}

}  // namespace oscar
