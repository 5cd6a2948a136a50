// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// dots.llm1: Qwen 3's attention, DeepSeek's experts. Layers from max_window_layers on slide if
// there is a window, and a missing sliding_window means 4096.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadDots1(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.rope.default_theta = 10000.0;
  config.Default("sliding_window", 4096);
  const auto window = config.OptionalSize("sliding_window");
  options.windows =
      ReadWindows(config, window, config.OptionalCount("max_window_layers").value_or(62));
  const Json* scores = config.Find("scoring_func");
  if (scores != nullptr && *scores == "noaux_tc")  // as the releases spell it
    config.Override("scoring_func", "sigmoid");
  ModelSpec spec = ReadDenseDecoder(config, options);
  config.Default("norm_topk_prob", false);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 0);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace oscar
