// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// MiMo-V2-Flash: the first layer and every sixth layer have full attention. The others have a
// sliding window, sinks and twice as many KV heads. Values have another head dimension than keys
// and are multiplied by a factor. Rope covers a part of each head; the two kinds of layers have
// different bases. Experts have sigmoid scores. Releases name nearly every field differently from
// transformers 5.
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Reads a release's list of numbers 0 and 1, one per layer. Returns nothing if there is no list.
std::optional<std::vector<bool>> ReadLayerFlags(ConfigReader& config, std::string_view key) {
  const Json* list = config.Find(key);
  if (list == nullptr) return std::nullopt;
  if (!list->is_array()) config.Fail(key, "must be a list of 0 and 1");
  std::vector<bool> flags;
  for (const Json& flag : *list) {
    if (flag != 0 && flag != 1) config.Fail(key, "must be a list of 0 and 1");
    flags.push_back(flag == 1);
  }
  if (static_cast<int64_t>(flags.size()) != ReadNumLayers(config))
    config.Fail(key, "must have a number for each layer");
  return flags;
}

// Checks the fields that releases have for sliding-window layers.
void CheckReleaseFields(ConfigReader& config, const AttentionSpec& full, int64_t v_head_dim) {
  config.Require("swa_num_attention_heads", full.num_q_heads);
  config.Require("swa_num_key_value_heads", 2 * full.num_kv_heads);
  config.Require("swa_head_dim", full.head_dim);
  config.Require("swa_v_head_dim", v_head_dim);
  config.Require("add_swa_attention_sink_bias", true);
  config.Require("add_full_attention_sink_bias", false);
  config.Require("hybrid_block_size", nullptr);
  config.Require("attention_projection_layout", "split");
  if (const auto window = config.OptionalSize("sliding_window")) {
    config.Require("sliding_window_size", *window);
    config.Require("attention_chunk_size", *window);
  }
}

ModelSpec ReadMiMoV2Flash(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.rope.default_theta = 5e6;
  options.rope.default_partial = 0.334;
  if (config.Has("rope_parameters")) options.rope.layer_type = "full_attention";
  if (config.Has("layernorm_epsilon")) options.eps_field = "layernorm_epsilon";
  const auto slides = ReadLayerFlags(config, "hybrid_layer_pattern");
  options.windows = ReadWindows(config, ReadWindow(config, 128), [&](int64_t layer) {
    return slides ? (*slides)[static_cast<size_t>(layer)] : layer != 0 && (layer + 1) % 6 != 0;
  });
  options.sliding_rope = options.rope;
  options.sliding_rope->default_theta = 10000.0;
  if (config.Has("rope_parameters")) options.sliding_rope->layer_type = "sliding_attention";
  options.sliding_rope->theta_field = "swa_rope_theta";
  ModelSpec spec = ReadDenseDecoder(config, options);

  const int64_t v_head_dim = config.OptionalSize("v_head_dim").value_or(128);
  CheckReleaseFields(config, spec.layers[0].attention, v_head_dim);
  config.Default("attention_value_scale", 0.707);
  const double v_scale = config.OptionalPositive("attention_value_scale").value_or(1.0);
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& attention = layer.attention;
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "self_attn.";
    if (attention.window) {
      attention.num_kv_heads *= 2;
      const std::string released = prefix + "attention_sink_bias";
      attention.sinks = config.Stores(released) ? released : prefix + "sinks";
    }
    if (attention.num_q_heads % attention.num_kv_heads != 0)
      config.Fail("num_key_value_heads", "twice this number must divide num_attention_heads");
    attention.v_head_dim = v_head_dim;
    attention.v_scale = v_scale;
    attention.k = Linear(prefix + "k_proj", spec.hidden_size,
                         attention.num_kv_heads * attention.head_dim, options.qkv_bias);
    attention.v = Linear(prefix + "v_proj", spec.hidden_size, attention.num_kv_heads * v_head_dim,
                         options.qkv_bias);
    attention.o = Linear(prefix + "o_proj", attention.num_q_heads * v_head_dim, spec.hidden_size);
  }

  std::optional<std::vector<bool>> sparse;
  if (const Json* listed = config.Find("moe_layer_freq"); listed != nullptr && listed->is_array()) {
    sparse = ReadLayerFlags(config, "moe_layer_freq");
    config.Override("moe_layer_freq", nullptr);
  }
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  if (experts.shared_size != 0)
    config.Fail("n_shared_experts", "is not implemented. Supported: none");
  const std::vector<bool> by_type = ReadDeepSeekSparseLayers(config, 1);
  if (!sparse) sparse = by_type;
  PutNamedExperts(config, {}, *sparse, experts, spec);
  spec.skipped_prefixes.push_back(config.prefix() + "mtp.");  // multi-token prediction
  return spec;
}

}  // namespace

std::span<const Family> MiMoFamilies() {
  static constexpr Family kRows[] = {
      {"mimo_v2_flash", "MiMoV2FlashForCausalLM", ReadMiMoV2Flash},
  };
  return kRows;
}

}  // namespace oscar
