// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gemma 1 and CodeGemma: norms (1 + w), embeddings times sqrt(hidden_size). Releases name the
// activation twice. hidden_activation is the one they were trained with, and hidden_act only counts
// without it.
#include "capture/model/families/gemma.h"

#include <cmath>

#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadGemma(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  options.norm = NormKind::kOnePlus;
  options.norms = {};
  options.rope.default_theta = 10000.0;
  if (config.Find("hidden_activation") == nullptr) options.activation_field = "hidden_act";
  config.Default("head_dim", 256);
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.embedding_multiplier = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.round_embedding_multiplier = true;
  return spec;
}

}  // namespace oscar
