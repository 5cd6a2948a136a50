// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mistral's models with plain keys and values; Mistral 4 has latent attention (deepseek.cc).
#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Mistral 7B and its dense successors of the same model_type: no biases, and either all layers have
// a sliding window or none has. "sliding_window": null means full attention, while a missing
// sliding_window means 4096 (transformers' MistralConfig).
ModelSpec ReadMistral(ConfigReader& config) {
  DenseDecoderOptions options;
  options.windows = ReadUniformWindows(config, ReadWindow(config, 4096));
  return ReadDenseDecoder(config, options);
}

// Ministral 8B of 2024: Mistral in which layer_types decides which layers have a sliding window.
// Without layer_types, all have one; a missing sliding_window means 4096.
ModelSpec ReadMinistral(ConfigReader& config) {
  DenseDecoderOptions options;
  options.rope.default_theta = 10000.0;
  options.windows = ReadWindows(config, ReadWindow(config, 4096), 0);
  return ReadDenseDecoder(config, options);
}

// Ministral 3 and other late Mistral models: no biases, yarn, and a factor on queries that grows
// with position beyond the original context (transformers 5, modeling_ministral3.py,
// get_llama_4_attn_scale). The factor is applied after rope, and not to keys. Late positions
// therefore have more weight in the covariance of queries.
ModelSpec ReadMinistral3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.default_head_dim = 128;
  options.rope.position_scaling = true;
  options.windows = ReadUniformWindows(config, ReadWindow(config));
  return ReadDenseDecoder(config, options);
}

// Mixtral: Mistral's attention, experts in every layer. w1 is the gate, w3 the up projection, w2
// the down projection. Unlike in Mistral, a missing sliding_window means none.
ModelSpec ReadMixtral(ConfigReader& config) {
  DenseDecoderOptions options;
  options.rope.default_theta = 1e6;
  options.dense_mlp = false;
  options.windows = ReadUniformWindows(config, ReadWindow(config));
  ModelSpec spec = ReadDenseDecoder(config, options);
  PutExperts(config, ReadBlockSparseExperts(config, spec.hidden_size), {}, spec);
  return spec;
}

}  // namespace

std::span<const Family> MistralFamilies() {
  static constexpr Family kRows[] = {
      {"ministral", "MinistralForCausalLM", ReadMinistral},
      {"ministral3", "Ministral3ForCausalLM", ReadMinistral3},
      {"mistral", "MistralForCausalLM", ReadMistral},
      {"mixtral", "MixtralForCausalLM", ReadMixtral},
  };
  return kRows;
}

}  // namespace oscar
