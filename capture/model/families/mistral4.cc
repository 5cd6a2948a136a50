// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mistral Small 4 and Large 3 with latent attention: experts with softmax scores, queries scaled by
// position (transformers 5, modeling_mistral4.py). The part of a head with position is given twice,
// by its size and as partial_rotary_factor of the whole.
#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadMistral4(ConfigReader& config) {
  if (config.Find("rope_parameters") == nullptr && config.Find("rope_scaling") == nullptr)
    config.Fail("rope_parameters", "is missing, and is no plain embedding in this family");
  ModelSpec spec = ReadLatentLayers(config, {.position_scaling = true, .part_of_head = true});
  config.Default("first_k_dense_replace", 0);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  experts.router.score = RouterScore::kSoftmax;
  experts.router.choice_bias = "";
  experts.router.float32_logits = false;
  PutLatentExperts(config, 0, std::move(experts), spec);
  return spec;
}

}  // namespace oscar
