// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gemma 2: norms (1 + w) before and after attention and MLP, embeddings times sqrt(hidden_size),
// soft caps on attention logits and on the model's logits, q·k scaled by query_pre_attn_scalar,
// every other layer slides, beginning with the first. The factor on embeddings is rounded to
// the compute dtype; in bf16 that is 0.3 % for some sizes.
#include <cmath>

#include "capture/model/families/dense_decoder.h"
#include "capture/model/families/gemma.h"

namespace oscar {

ModelSpec ReadGemma2(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  options.norm = NormKind::kOnePlus;
  config.Default("head_dim", 256);
  config.Default("query_pre_attn_scalar", 256);
  config.Default("attn_logit_softcapping", 50.0);
  config.Default("final_logit_softcapping", 30.0);
  config.Default("sliding_window", 4096);
  options.rope.default_theta = 10000.0;
  options.scale = 1 / std::sqrt(config.Positive("query_pre_attn_scalar"));
  if (const auto window = config.OptionalSize("sliding_window"))
    config.Require("sliding_window_size", *window);
  options.windows = ReadPatternWindows(config, config.OptionalSize("sliding_window"), 2);
  ModelSpec spec = ReadDenseDecoder(config, options);
  FinishGemma(config, spec);
  const double softcap = config.OptionalPositive("attn_logit_softcapping").value_or(0.0);
  for (LayerSpec& layer : spec.layers) layer.attention.softcap = softcap;
  return spec;
}

}  // namespace oscar
