// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arcee's models: AFM-4.5B (arcee) and Trinity (afmoe).
#include <cmath>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// AFM-4.5B: Llama with a squared-ReLU MLP of two projections. There is no gate_proj, although the
// size fields have Llama's names.
ModelSpec ReadArcee(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_activation = "relu2";
  options.gated_mlp = false;
  return ReadDenseDecoder(config, options);
}

// Trinity: norms before and after attention and MLP, and QK norms. The gate on the attention output
// has its own projection. Experts have sigmoid scores. Full-attention layers have no rope.
// Embeddings are multiplied by sqrt(hidden_size) only if mup_enabled is set.
ModelSpec ReadAfmoe(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.qk_norm = true;
  options.norms = {"input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm",
                   "post_mlp_layernorm"};
  options.default_head_dim = 128;
  options.windows =
      ReadPatternWindows(config, ReadWindow(config, 1024),
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
  config.Ignore({"load_balance_coeff", "use_grouped_mm"});
  NameSharedExpert("mlp.shared_experts.",
                   config.OptionalCount("num_shared_experts").value_or(2) * size, experts);
  const int64_t dense = config.OptionalCount("num_dense_layers").value_or(1);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < ReadNumLayers(config); ++i) sparse.push_back(i >= dense);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace

std::span<const Family> ArceeFamilies() {
  static constexpr Family kRows[] = {
      {"afmoe", "AfmoeForCausalLM", ReadAfmoe},
      {"arcee", "ArceeForCausalLM", ReadArcee},
  };
  return kRows;
}

}  // namespace oscar
