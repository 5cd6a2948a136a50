// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text models of Qwen3.5 and 3.6, dense and with experts. Releases store all experts of a layer
// as one tensor, without ".weight"; transformers itself writes them separately.
#include "capture/model/families/qwen_hybrid.h"

namespace oscar {

ModelSpec ReadQwen35(ConfigReader& config) {
  return ReadQwenHybrid(config, /*fused=*/false, /*dense_mlp=*/true);
}

ModelSpec ReadQwen35Moe(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(config, /*fused=*/false, /*dense_mlp=*/false);
  ExpertsSpec experts = ReadQwenHybridExperts(config, spec.hidden_size);
  experts.router.normalize = true;
  config.Require("norm_topk_prob", true);
  (void)config.Find("intermediate_size");  // no layer has a dense MLP
  PutNamedExperts(config, {.usually_fused = true}, std::vector<bool>(spec.layers.size(), true),
                  experts, spec);
  return spec;
}

}  // namespace oscar
