// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-Next 80B-A3B. The projections of linear attention are fused in an order by key head.
#include "capture/model/families/qwen_hybrid.h"

namespace oscar {

ModelSpec ReadQwen3Next(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(config, /*fused=*/true, /*dense_mlp=*/true);
  ExpertsSpec experts = ReadQwenHybridExperts(config, spec.hidden_size);
  experts.router.normalize = config.Bool("norm_topk_prob", true);
  const std::vector<bool> sparse = ReadQwenSparseLayers(config);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace oscar
