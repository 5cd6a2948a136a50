// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// MiniMax-M2 to M2.7: experts in every layer, a part of each head rotates. Queries and keys are
// normalized over all heads together, and intermediate_size is that of an expert.
#include "capture/model/families/experts_config.h"

namespace oscar {

namespace {

// Fields of releases that describe variants; only M2's is implemented.
void RequireM2(ConfigReader& config) {
  config.Require("qk_norm_type", "per_layer");
  config.Require("use_qk_norm", true);
  config.Require("scoring_func", "sigmoid");
  config.Require("use_routing_bias", true);
  config.Require("shared_intermediate_size", 0);
  config.Require("sliding_window", nullptr);
  for (const char* key :
       {"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta"}) {
    config.Require(key, 1.0);
  }
  const Json* kinds = config.Find("attn_type_list");
  if (kinds != nullptr && (!kinds->is_array() || std::ranges::any_of(*kinds, [](const Json& kind) {
        return kind != 1;
      }))) {
    config.Fail("attn_type_list", "is not implemented: linear attention. Supported: all 1");
  }
  // Fields without effect: classes that transformers now has, sizes of parts that do not exist,
  // layers that predict further tokens, a server's limits.
  for (const char* key : {"auto_map", "mlp_intermediate_size", "shared_moe_mode", "use_mtp",
                          "num_mtp_modules", "mtp_transformer_layers", "max_model_len"}) {
    (void)config.Find(key);
  }
}

}  // namespace

ModelSpec ReadMiniMaxM2(ConfigReader& config) {
  RequireM2(config);
  DenseDecoderOptions options;
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.rope.default_theta = 5e6;
  options.rope.default_partial = 1.0;
  options.dense_mlp = false;
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts = ReadBlockSparseExperts(config, spec.hidden_size);
  experts.router.score = RouterScore::kSigmoid;
  const std::string in_gate = "block_sparse_moe.gate.e_score_correction_bias";
  experts.router.choice_bias = config.Stores(config.LayerPrefix(0) + in_gate)
                                   ? in_gate
                                   : "block_sparse_moe.e_score_correction_bias";
  PutExperts(config, experts, std::vector<bool>(spec.layers.size(), true), spec);
  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  for (int64_t i = 0; config.StoresPrefix(config.LayerPrefix(num_layers + i)); ++i)
    spec.skipped_prefixes.push_back(config.LayerPrefix(num_layers + i));
  return spec;
}

}  // namespace oscar
