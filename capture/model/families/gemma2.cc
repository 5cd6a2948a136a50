// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gemma 2: norms (1 + w) before and after attention and MLP, embeddings times sqrt(hidden_size),
// soft caps on attention logits and on the model's logits, q·k scaled by query_pre_attn_scalar;
// every other layer slides, beginning with the first. The factor on embeddings is rounded to the
// compute dtype, which in bf16 is 0.3 % for some sizes.
#include "capture/model/families/gemma.h"

namespace oscar {

ModelSpec ReadGemma2(ConfigReader& config) {
  ModelSpec spec = ReadSoftcappedGemma(config, GemmaOptions(config));
  if (const auto window = config.OptionalSize("sliding_window"))
    config.Require("sliding_window_size", *window);
  return spec;
}

}  // namespace oscar
