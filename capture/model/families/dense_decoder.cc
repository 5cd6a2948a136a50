// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/dense_decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "capture/model/rope_config.h"

namespace oscar {
namespace {

constexpr int64_t kMostLayers = 4096;

int64_t ReadNumLayers(ConfigReader& config) {
  const int64_t num_layers = config.Size("num_hidden_layers");
  if (num_layers > kMostLayers)
    config.Fail("num_hidden_layers", fmt::format("must lie in 1 .. {}", kMostLayers));
  return num_layers;
}

LinearSpec Linear(const std::string& name, int64_t in_features, int64_t out_features, bool bias) {
  return {name + ".weight", bias ? name + ".bias" : "", in_features, out_features};
}

void ReadHeads(ConfigReader& config, int64_t hidden_size, const DenseDecoderOptions& options,
               AttentionSpec& attention) {
  attention.num_q_heads = config.Size("num_attention_heads");
  attention.num_kv_heads =
      config.OptionalSize("num_key_value_heads").value_or(attention.num_q_heads);
  if (attention.num_q_heads % attention.num_kv_heads != 0) {
    config.Fail("num_key_value_heads",
                fmt::format("must divide num_attention_heads {}", attention.num_q_heads));
  }
  std::optional<int64_t> head_dim = config.OptionalSize("head_dim");
  if (!head_dim) head_dim = options.default_head_dim;
  if (!head_dim) {
    if (hidden_size % attention.num_q_heads != 0) {
      config.Fail(
          "num_attention_heads",
          fmt::format("must divide hidden_size {} where there is no head_dim", hidden_size));
    }
    head_dim = hidden_size / attention.num_q_heads;
  }
  attention.head_dim = attention.v_head_dim = *head_dim;
  attention.scale = 1 / std::sqrt(static_cast<double>(*head_dim));
  attention.rope = ReadRope(config, *head_dim, options.default_rope_theta);
}

LayerSpec MakeLayer(int layer_id, int64_t hidden_size, int64_t intermediate_size,
                    const AttentionSpec& geometry, const DenseDecoderOptions& options) {
  const std::string prefix = fmt::format("model.layers.{}.", layer_id);
  const std::string self_attn = prefix + "self_attn.", mlp = prefix + "mlp.";
  LayerSpec layer;
  layer.layer_id = layer_id;
  layer.attention_norm = {prefix + "input_layernorm.weight", hidden_size};
  layer.mlp_norm = {prefix + "post_attention_layernorm.weight", hidden_size};

  AttentionSpec& attention = layer.attention = geometry;
  const int64_t q_width = attention.num_q_heads * attention.head_dim;
  const int64_t k_width = attention.num_kv_heads * attention.head_dim;
  const int64_t v_width = attention.num_kv_heads * attention.v_head_dim;
  const int64_t o_width = attention.num_q_heads * attention.v_head_dim;
  attention.q = Linear(self_attn + "q_proj", hidden_size, q_width, options.qkv_bias);
  attention.k = Linear(self_attn + "k_proj", hidden_size, k_width, options.qkv_bias);
  attention.v = Linear(self_attn + "v_proj", hidden_size, v_width, options.qkv_bias);
  attention.o = Linear(self_attn + "o_proj", o_width, hidden_size, options.o_bias);
  attention.qk_norm = options.qk_norm;
  if (options.qk_norm) {
    attention.q_norm = {self_attn + "q_norm.weight", attention.head_dim};
    attention.k_norm = {self_attn + "k_norm.weight", attention.head_dim};
  }
  if (!options.windows.empty()) attention.window = options.windows[static_cast<size_t>(layer_id)];

  layer.mlp.intermediate_size = intermediate_size;
  layer.mlp.gate = Linear(mlp + "gate_proj", hidden_size, intermediate_size, options.mlp_bias);
  layer.mlp.up = Linear(mlp + "up_proj", hidden_size, intermediate_size, options.mlp_bias);
  layer.mlp.down = Linear(mlp + "down_proj", intermediate_size, hidden_size, options.mlp_bias);
  return layer;
}

}  // namespace

ModelSpec ReadDenseDecoder(ConfigReader& config, const DenseDecoderOptions& options) {
  ModelSpec spec;
  spec.hidden_size = config.Size("hidden_size");
  spec.vocab_size = config.Size("vocab_size");
  spec.max_positions = config.Positions("max_position_embeddings");
  spec.rms_norm_eps = config.Positive("rms_norm_eps");
  if (spec.rms_norm_eps >= 1) config.Fail("rms_norm_eps", "must be below 1");
  if (config.String("hidden_act", "silu") != "silu")
    config.Fail("hidden_act", "is not implemented. Supported: silu");

  AttentionSpec geometry;
  ReadHeads(config, spec.hidden_size, options, geometry);
  const int64_t intermediate_size = config.Size("intermediate_size");
  const int64_t num_layers = ReadNumLayers(config);
  for (int64_t i = 0; i < num_layers; ++i) {
    spec.layers.push_back(
        MakeLayer(static_cast<int>(i), spec.hidden_size, intermediate_size, geometry, options));
  }
  spec.rope_description = DescribeRope(geometry.rope);

  spec.embedding = "model.embed_tokens.weight";
  spec.final_norm = {"model.norm.weight", spec.hidden_size};
  spec.tied_head = config.Bool("tie_word_embeddings", false);
  spec.head = {spec.tied_head ? spec.embedding : "lm_head.weight", "", spec.hidden_size,
               spec.vocab_size};
  spec.skipped_suffixes = {
      "rotary_emb.inv_freq"};  // a buffer that old releases stored; rope_spec.h computes it
  if (spec.tied_head)
    spec.skipped_suffixes.push_back("lm_head.weight");  // a second copy of the embedding
  return spec;
}

std::vector<std::optional<int64_t>> ReadWindows(ConfigReader& config, std::optional<int64_t> window,
                                                int64_t first_sliding) {
  const int64_t num_layers = ReadNumLayers(config);
  const Json* types = config.Find("layer_types");
  if (types != nullptr &&
      (!types->is_array() || types->size() != static_cast<size_t>(num_layers))) {
    config.Fail("layer_types",
                fmt::format("must be a list of num_hidden_layers = {} names", num_layers));
  }
  std::vector<std::optional<int64_t>> windows(static_cast<size_t>(num_layers));
  for (size_t i = 0; i < windows.size(); ++i) {
    bool slides = window.has_value() && static_cast<int64_t>(i) >= first_sliding;
    if (types != nullptr) {
      const Json& type = (*types)[i];
      slides = type == "sliding_attention";
      if (!slides && type != "full_attention") {
        config.Fail("layer_types",
                    fmt::format("of layer {} is not implemented: {}. Supported: full_attention, "
                                "sliding_attention",
                                i, type.dump()));
      }
    }
    if (!slides) continue;
    if (!window)
      config.Fail("layer_types",
                  fmt::format("makes layer {} slide, but no sliding_window is in use", i));
    windows[i] = window;
  }
  return windows;
}

}  // namespace oscar
