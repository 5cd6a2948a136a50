// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GLM-4.5 to 4.7: half of each head rotates, the first layers are dense, experts as in DeepSeek-V3.
// Unlike in GLM-4, pairs are halves apart, and the size decides whether q and k have a norm.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadGlm4Moe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.qk_norm = config.Bool("use_qk_norm", false);
  options.rope.default_partial = 0.5;
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  PutNamedExperts(config, {}, sparse, experts, spec);
  SkipPredictionLayers(config, spec);
  return spec;
}

}  // namespace oscar
