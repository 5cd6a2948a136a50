// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arcee's Trinity: norms before and after attention and MLP, norms of queries and keys, a
// gate on the attention output with its own projection, experts with sigmoid scores. Full
// layers have no rope, and embeddings are multiplied by sqrt(hidden_size) only if mup_enabled
// is set.
#include <cmath>

#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadAfmoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.norms = {"input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm",
                   "post_mlp_layernorm"};
  options.default_head_dim = 128;
  options.rope.default_theta = 10000.0;
  config.Default("sliding_window", 1024);
  options.windows =
      ReadPatternWindows(config, config.OptionalSize("sliding_window"),
                         config.OptionalSize("global_attn_every_n_layers").value_or(4));
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (config.Bool("mup_enabled", false))
    spec.embedding_multiplier = std::sqrt(static_cast<double>(spec.hidden_size));
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& attention = layer.attention;
    if (!attention.window) attention.rope = {RopeKind::kNone};
    attention.gate = Linear(config.LayerPrefix(layer.layer_id) + "self_attn.gate_proj",
                            spec.hidden_size, attention.num_q_heads * attention.head_dim);
  }

  const int64_t size = config.Size("moe_intermediate_size");
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, size, "mlp.router.gate");
  experts.router.score = RouterScore::kSigmoid;
  experts.router.choice_bias = "mlp.expert_bias";
  experts.router.normalize = true;
  experts.router.smallest_weight_sum = 1e-20;
  experts.router.scale = config.OptionalPositive("route_scale").value_or(1.0);
  config.Require("route_norm", true);
  config.Require("score_func", "sigmoid");
  for (const char* key : {"n_group", "topk_group", "num_expert_groups", "num_limited_groups"})
    config.Require(key, 1);
  for (const char* key : {"load_balance_coeff", "use_grouped_mm"}) (void)config.Find(key);
  NameSharedExpert("mlp.shared_experts.",
                   config.OptionalCount("num_shared_experts").value_or(2) * size, experts);
  const int64_t dense = config.OptionalCount("num_dense_layers").value_or(1);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < ReadNumLayers(config); ++i) sparse.push_back(i >= dense);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace oscar
