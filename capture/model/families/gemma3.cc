// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3 (text part): Gemma 2 without soft caps, with norms (1 + w) of queries and keys; five
// sliding layers per full one, each kind with its own rotary base. Traps: the old rope_scaling
// applies only to the full layers; attn_logit_softcapping is left from Gemma 2's code and stored
// but never applied (modeling_gemma3.py).
#include <cmath>

#include "capture/model/families/dense_decoder.h"
#include "capture/model/families/gemma.h"

namespace oscar {

ModelSpec ReadGemma3(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  // Released text_config objects only contain differences from these (transformers,
  // Gemma3TextConfig).
  const std::pair<const char*, Json> defaults[] = {
      {"vocab_size", 262208},     {"num_attention_heads", 8},
      {"num_key_value_heads", 4}, {"head_dim", 256},
      {"sliding_window", 4096},   {"query_pre_attn_scalar", 256},
      {"hidden_size", 2304},      {"max_position_embeddings", 131072},
      {"num_hidden_layers", 26},  {"intermediate_size", 9216},
  };
  for (const auto& [key, value] : defaults) config.Default(key, value);
  options.norm = NormKind::kOnePlus;
  options.qk_norm = true;
  options.scale = 1 / std::sqrt(config.Positive("query_pre_attn_scalar"));
  for (const char* key : {"_sliding_window_pattern", "attn_logit_softcapping"})
    (void)config.Find(key);
  const int64_t pattern = config.OptionalSize("sliding_window_pattern").value_or(6);
  options.windows = ReadPatternWindows(config, config.OptionalSize("sliding_window"), pattern);
  options.rope.layer_type = "full_attention";
  options.rope.default_theta = 1e6;
  ModelSpec spec = ReadDenseDecoder(config, options);
  FinishGemma(config, spec);
  const RopeOptions local{.default_theta = 1e4,
                          .layer_type = "sliding_attention",
                          .theta_field = "rope_local_base_freq",
                          .scaled = false};
  const RopeSpec local_rope = ReadRope(config, spec.layers[0].attention.head_dim, local).rope;
  for (LayerSpec& layer : spec.layers) {
    if (layer.attention.window) layer.attention.rope = local_rope;
  }
  return spec;
}

}  // namespace oscar
