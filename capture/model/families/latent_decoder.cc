// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/latent_decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace oscar {
namespace {

struct LatentGeometry {
  int64_t heads, nope, rope, value, rank;
  std::optional<int64_t> q_rank;
  bool bias;
};

LatentGeometry ReadLatentGeometry(ConfigReader& config) {
  LatentGeometry g{};
  g.heads = config.Size("num_attention_heads");
  if (config.OptionalSize("num_key_value_heads").value_or(g.heads) != g.heads) {
    config.Fail("num_key_value_heads",
                fmt::format("must be num_attention_heads = {} in latent attention", g.heads));
  }
  g.nope = config.Size("qk_nope_head_dim");
  g.rope = config.Size("qk_rope_head_dim");
  g.value = config.Size("v_head_dim");
  g.rank = config.Size("kv_lora_rank");
  g.q_rank = config.OptionalSize("q_lora_rank");
  g.bias = config.Bool("attention_bias", false);
  if (config.OptionalSize("qk_head_dim").value_or(g.nope + g.rope) != g.nope + g.rope)
    config.Fail("qk_head_dim", "must be qk_nope_head_dim + qk_rope_head_dim");
  return g;
}

LatentSpec NamedLatent(const LatentGeometry& g, const std::string& prefix, int64_t hidden_size) {
  LatentSpec latent;
  latent.rank = g.rank;
  latent.nope_dim = g.nope;
  latent.rope_dim = g.rope;
  const int64_t queries = g.heads * (g.nope + g.rope);
  if (g.q_rank) {
    latent.q_a = Linear(prefix + "q_a_proj", hidden_size, *g.q_rank, g.bias);
    latent.q_a_norm = {prefix + "q_a_layernorm.weight", *g.q_rank};
    latent.q_b = Linear(prefix + "q_b_proj", *g.q_rank, queries);
  } else {
    latent.q = Linear(prefix + "q_proj", hidden_size, queries);
  }
  latent.kv_a = Linear(prefix + "kv_a_proj_with_mqa", hidden_size, g.rank + g.rope, g.bias);
  latent.kv_a_norm = {prefix + "kv_a_layernorm.weight", g.rank};
  latent.kv_b = Linear(prefix + "kv_b_proj", g.rank, g.heads * (g.nope + g.value));
  return latent;
}

// yarn_apply_mscale of transformers 5.
double LatentScale(const LatentGeometry& g, const RopeConfig& rope) {
  const double scale = 1 / std::sqrt(static_cast<double>(g.nope + g.rope));
  if (rope.mscale_all_dim == 0 || rope.rope.factor <= 1) return scale;
  const double mscale = 0.1 * rope.mscale_all_dim * std::log(rope.rope.factor) + 1;
  return scale * mscale * mscale;
}

}  // namespace

ModelSpec ReadLatentLayers(ConfigReader& config, const LatentOptions& latent) {
  const LatentGeometry g = ReadLatentGeometry(config);
  const int64_t head_dim = latent.part_of_head ? g.nope + g.rope : g.rope;
  config.Override("head_dim", head_dim);  // the part that rotates, or the whole head
  DenseDecoderOptions options;
  options.o_bias = g.bias;
  options.tied_by_default = latent.tied_by_default;
  options.rope.position_scaling = latent.position_scaling;
  if (latent.part_of_head)
    options.rope.default_partial = static_cast<double>(g.rope) / static_cast<double>(head_dim);
  options.rope.default_theta = 10000.0;
  options.rope.layout =
      config.Bool("rope_interleave", true) ? RopeLayout::kInterleaved : RopeLayout::kHalf;
  const RopeConfig rope = ReadRope(config, head_dim, options.rope);
  if (rope.rope.rotary_dim != g.rope) {
    config.Fail("qk_rope_head_dim", fmt::format("contradicts partial_rotary_factor, which makes {} "
                                                "dimensions turn",
                                                rope.rope.rotary_dim));
  }
  options.scale = LatentScale(g, rope);
  (void)config.Find("auto_map");  // transformers now has these classes
  // Fields without effect, for training.
  for (const char* key : {"aux_loss_alpha", "seq_aux", "ep_size"}) (void)config.Find(key);

  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "self_attn.";
    AttentionSpec& attention = layer.attention;
    attention.latent = NamedLatent(g, prefix, spec.hidden_size);
    attention.head_dim = g.nope + g.rope;
    attention.v_head_dim = g.value;
    attention.q = attention.k = attention.v = {};
    attention.o = Linear(prefix + "o_proj", g.heads * g.value, spec.hidden_size, g.bias);
  }
  return spec;
}

void PutLatentExperts(ConfigReader& config, int64_t default_dense, ExpertsSpec experts,
                      ModelSpec& spec) {
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, default_dense);
  PutNamedExperts(config, {}, sparse, experts, spec);
  SkipPredictionLayers(config, spec);
}

ModelSpec ReadLatentDecoder(ConfigReader& config, int64_t default_dense) {
  ModelSpec spec = ReadLatentLayers(config, {});
  PutLatentExperts(config, default_dense, ReadSigmoidExperts(config, spec.hidden_size), spec);
  return spec;
}

}  // namespace oscar
