// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-V2, V2-Lite, Coder-V2: latent attention, experts with softmax scores whose weights
// need not sum to 1. Groups of experts are judged by their best expert, not by two as in
// DeepSeek-V3.
#include <fmt/format.h>

#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadDeepSeekV2(ConfigReader& config) {
  ModelSpec spec = ReadLatentLayers(config, {});
  for (LayerSpec& layer : spec.layers) layer.attention.latent->keeps_pairs = true;
  config.Require("mlp_bias", false);
  config.Require("norm_topk_prob", false);
  const std::string method = config.String("topk_method", "greedy");
  if (method != "greedy" && method != "group_limited_greedy")
    config.Fail("topk_method", "is not implemented. Supported: greedy, group_limited_greedy");
  config.Require("scoring_func", "softmax");
  config.Override("topk_method", nullptr);  // both fields have another meaning in DeepSeek-V3
  config.Override("scoring_func", nullptr);
  config.Default("norm_topk_prob", false);
  if (method == "greedy") {
    config.Override("n_group", nullptr);
    config.Override("topk_group", nullptr);
  }
  config.Default("n_shared_experts", 2);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  experts.router.score = RouterScore::kSoftmax;
  experts.router.choice_bias = "";
  experts.router.set_terms = 1;
  PutLatentExperts(config, 0, std::move(experts), spec);
  return spec;
}

}  // namespace oscar
