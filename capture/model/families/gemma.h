// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Common code of Gemma 2, 3 and 4. Their activation is hidden_activation; hidden_act of old
// releases is ignored.
#pragma once

#include <cmath>

#include "capture/model/families/dense_decoder.h"

namespace oscar {

inline DenseDecoderOptions GemmaOptions(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.norms = SandwichNorms();
  options.activation_field = "hidden_activation";
  options.default_activation = "gelu_pytorch_tanh";
  options.tied_by_default = true;
  (void)config.Find("hidden_act");
  config.Default("rms_norm_eps", 1e-6);
  return options;
}

inline void FinishGemma(ConfigReader& config, ModelSpec& spec) {
  spec.embedding_multiplier = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.round_embedding_multiplier = true;
  spec.logit_softcap = config.OptionalPositive("final_logit_softcapping").value_or(0.0);
}

// Gemma 2 and VaultGemma: soft caps, q·k scaled by query_pre_attn_scalar, every other layer slides.
inline ModelSpec ReadSoftcappedGemma(ConfigReader& config, DenseDecoderOptions options) {
  options.norm = NormKind::kOnePlus;
  config.Default("head_dim", 256);
  config.Default("query_pre_attn_scalar", 256);
  config.Default("attn_logit_softcapping", 50.0);
  config.Default("final_logit_softcapping", 30.0);
  config.Default("sliding_window", 4096);
  options.rope.default_theta = 10000.0;
  options.scale = 1 / std::sqrt(config.Positive("query_pre_attn_scalar"));
  options.windows = ReadPatternWindows(config, config.OptionalSize("sliding_window"), 2);
  ModelSpec spec = ReadDenseDecoder(config, options);
  FinishGemma(config, spec);
  const double softcap = config.OptionalPositive("attn_logit_softcapping").value_or(0.0);
  for (LayerSpec& layer : spec.layers) layer.attention.softcap = softcap;
  return spec;
}

}  // namespace oscar
