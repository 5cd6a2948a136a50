// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Llama 4 Scout and Maverick, text: experts that get the token times its weight, three layers with
// rope in pairs of neighbours per layer without, unweighted norms of queries and keys after rope.
// Layers with rope see only their own chunk of attention_chunk_size tokens, so longer sequences are
// refused. In the other layers queries are scaled by position.
#include <fmt/format.h>

#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {

namespace {

// Which layers have rope: no_rope_layers[i] is 1 if layer i HAS it.
std::vector<bool> ReadTurningLayers(ConfigReader& config) {
  const int64_t num_layers = ReadNumLayers(config);
  const int64_t interval = config.OptionalSize("no_rope_layer_interval").value_or(4);
  config.Require("nope_layer_interval", interval);  // a second name of it
  const Json* listed = config.Find("no_rope_layers");
  if (listed != nullptr && listed->empty()) listed = nullptr;
  std::vector<bool> turns;
  for (int64_t i = 0; i < num_layers; ++i) turns.push_back((i + 1) % interval != 0);
  if (listed == nullptr) return turns;
  if (!listed->is_array() || listed->size() != turns.size() ||
      std::ranges::any_of(*listed, [](const Json& x) { return x != 0 && x != 1; })) {
    config.Fail("no_rope_layers", fmt::format("must be a list of {} numbers 0 and 1", num_layers));
  }
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = (*listed)[i] == 1;
  return turns;
}

std::vector<bool> ReadLlama4SparseLayers(ConfigReader& config) {
  const int64_t num_layers = ReadNumLayers(config);
  const int64_t step = config.OptionalSize("interleave_moe_layer_step").value_or(1);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < num_layers; ++i) sparse.push_back((i + 1) % step == 0);
  const Json* listed = config.Find("moe_layers");
  if (listed == nullptr) return sparse;
  if (!listed->is_array()) config.Fail("moe_layers", "must be a list of layer numbers");
  sparse.assign(sparse.size(), false);
  for (const Json& layer : *listed) {
    if (!layer.is_number_integer() || layer < 0 || layer >= num_layers)
      config.Fail("moe_layers", fmt::format("must hold layer numbers below {}", num_layers));
    sparse[layer.get<size_t>()] = true;
  }
  return sparse;
}

// Up to the length of a chunk, chunked layers see everything.
void LimitToOneChunk(ConfigReader& config, const std::vector<bool>& turns, ModelSpec& spec) {
  const std::vector<std::string> types =
      ReadLayerTypes(config, {"full_attention", "chunked_attention"}, [&](int64_t layer) {
        return turns[static_cast<size_t>(layer)] ? "chunked_attention" : "full_attention";
      });
  config.Default("attention_chunk_size", 8192);
  const auto chunk = config.OptionalSize("attention_chunk_size");
  if (!chunk || std::ranges::find(types, "chunked_attention") == types.end()) return;
  if (*chunk >= spec.max_positions) return;
  spec.max_positions = *chunk;
  spec.positions_limit =
      "attention_chunk_size: beyond it attention is in chunks, which is not implemented";
}

}  // namespace

ModelSpec ReadLlama4(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 500000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  options.dense_mlp = false;
  const bool head_norms = config.Bool("use_qk_norm", true);
  ModelSpec spec = ReadDenseDecoder(config, options);
  const std::vector<bool> turns = ReadTurningLayers(config),
                          sparse = ReadLlama4SparseLayers(config);
  LimitToOneChunk(config, turns, spec);
  const bool scaled = config.Bool("attn_temperature_tuning", true);
  const double beta = config.OptionalPositive("attn_scale").value_or(0.1);
  const int64_t period = config.OptionalSize("floor_scale").value_or(8192);
  (void)config.Find("for_llm_compressor");
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& attention = layer.attention;
    if (!turns[static_cast<size_t>(layer.layer_id)]) {
      attention.rope = {RopeKind::kNone};
      attention.position_beta = scaled ? beta : 0;
      attention.position_period = period;
      attention.position_offset = 1;
    } else if (head_norms) {
      attention.qk_norm = attention.norm_after_rope = true;
      attention.q_norm = attention.k_norm = {"", attention.head_dim, NormKind::kUnscaled};
    }
    if (sparse[static_cast<size_t>(layer.layer_id)]) continue;
    layer.mlp = DenseMlp(config.LayerPrefix(layer.layer_id) + "feed_forward.", spec.hidden_size,
                         config.Size("intermediate_size_mlp"), options,
                         ReadActivation(config, "hidden_act", "silu"));
  }
  (void)config.Find("intermediate_size_mlp");
  const int64_t size = config.Size("intermediate_size");
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, size, "feed_forward.router");
  experts.router.score = RouterScore::kSigmoid;
  experts.router.weigh_input = true;
  NameSharedExpert("feed_forward.shared_expert.", size, experts);
  NameExperts(config, FirstSparse(sparse),
              {.separate = "feed_forward.experts.",
               .fused_gate_up = "feed_forward.experts.gate_up_proj",
               .fused_down = "feed_forward.experts.down_proj",
               .usually_fused = true},
              experts);
  experts.transposed = experts.fused;
  PutExperts(config, experts, sparse, spec);
  return spec;
}

}  // namespace oscar
