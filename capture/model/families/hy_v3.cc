// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Hunyuan 3 (HY 2.0): norms of queries and keys before rope, unlike Hunyuan 1; experts with sigmoid
// scores and a bias for the choice, and a shared expert. The factor on the weights is named
// router_scaling_factor, and the bias is stored beside the router, not in it.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadHyV3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.qk_norm = true;
  options.rope.default_theta = 11158840.0;
  config.Require("qk_norm", true);
  if (options.mlp_bias)
    config.Fail("mlp_bias", "is not implemented: biases of experts. Supported: false");
  ModelSpec spec = ReadDenseDecoder(config, options);
  config.Default("routed_scaling_factor",
                 config.OptionalPositive("router_scaling_factor").value_or(2.826));
  config.Default("n_shared_experts", config.OptionalCount("num_shared_experts").value_or(1));
  for (const char* key : {"route_norm", "moe_router_use_sigmoid", "moe_router_enable_expert_bias"})
    config.Require(key, true);
  // These only affect rounding in bfloat16.
  for (const char* key :
       {"enable_moe_fp32_combine", "enable_attention_fp32_softmax", "enable_lm_head_fp32"}) {
    (void)config.Find(key);
  }
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  const bool released =
      !config.knows_names() ||
      config.StoresPrefix(config.LayerPrefix(FirstSparse(sparse)) + "mlp.router.");
  if (released) {
    experts.router.logits.weight = "mlp.router.gate.weight";
    experts.router.choice_bias = "mlp.expert_bias";
    NameSharedExpert("mlp.shared_mlp.", experts.shared_size, experts);
  }
  PutNamedExperts(config, {}, sparse, experts, spec);
  SkipPredictionLayers(config, spec);
  return spec;
}

}  // namespace oscar
