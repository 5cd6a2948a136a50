// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixtral: Mistral's attention, experts in every layer. w1 is the gate, w3 the up projection, w2
// the down projection. Unlike in Mistral, a missing sliding_window means none.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadMixtral(ConfigReader& config) {
  DenseDecoderOptions options;
  options.rope.default_theta = 1e6;
  options.dense_mlp = false;
  options.windows = ReadUniformWindows(config, config.OptionalSize("sliding_window"));
  ModelSpec spec = ReadDenseDecoder(config, options);
  PutExperts(config, ReadBlockSparseExperts(config, spec.hidden_size),
             std::vector<bool>(spec.layers.size(), true), spec);
  return spec;
}

}  // namespace oscar
