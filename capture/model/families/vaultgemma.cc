// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// VaultGemma: Gemma 2 without the norms behind attention and MLP (transformers 5,
// modeling_vaultgemma.py). The norm before the MLP keeps Gemma 2's name,
// pre_feedforward_layernorm.
#include <cmath>

#include "capture/model/families/dense_decoder.h"
#include "capture/model/families/gemma.h"

namespace oscar {

ModelSpec ReadVaultGemma(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  options.norm = NormKind::kOnePlus;
  options.norms = {"input_layernorm", "", "pre_feedforward_layernorm", ""};
  options.rope.default_theta = 10000.0;
  config.Default("head_dim", 256);
  config.Default("query_pre_attn_scalar", 256);
  config.Default("attn_logit_softcapping", 50.0);
  config.Default("final_logit_softcapping", 30.0);
  config.Default("sliding_window", 4096);
  options.scale = 1 / std::sqrt(config.Positive("query_pre_attn_scalar"));
  options.windows = ReadPatternWindows(config, config.OptionalSize("sliding_window"), 2);
  ModelSpec spec = ReadDenseDecoder(config, options);
  FinishGemma(config, spec);
  const double softcap = config.OptionalPositive("attn_logit_softcapping").value_or(0.0);
  for (LayerSpec& layer : spec.layers) layer.attention.softcap = softcap;
  return spec;
}

}  // namespace oscar
