// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-V2 and V3, and other families with multi-head latent attention, most of which also have
// DeepSeek's experts. Traps: with yarn, the softmax scale contains the square of the factor from
// mscale_all_dim; head_dim in these configs is missing or is the size of the position part only.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/model/families/experts_config.h"

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
                fmt::format("must equal num_attention_heads = {} for latent attention", g.heads));
  }
  g.nope = config.Size("qk_nope_head_dim");
  g.rope = config.Size("qk_rope_head_dim");
  g.value = config.Size("v_head_dim");
  g.rank = config.Size("kv_lora_rank");
  g.q_rank = config.OptionalSize("q_lora_rank");
  g.bias = config.Bool("attention_bias", false);
  if (config.OptionalSize("qk_head_dim").value_or(g.nope + g.rope) != g.nope + g.rope)
    config.Fail("qk_head_dim", "must equal qk_nope_head_dim + qk_rope_head_dim");
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

// Applies yarn_apply_mscale of transformers 5.
double LatentScale(const LatentGeometry& g, const RopeConfig& rope) {
  const double scale = 1 / std::sqrt(static_cast<double>(g.nope + g.rope));
  if (rope.mscale_all_dim == 0 || rope.rope.factor <= 1) return scale;
  const double mscale = 0.1 * rope.mscale_all_dim * std::log(rope.rope.factor) + 1;
  return scale * mscale * mscale;
}

struct LatentOptions {
  bool position_scaling = false;  // queries scaled by position (llama_4_scaling_beta)
  bool part_of_head = false;      // rope_parameters has a partial_rotary_factor
  bool tied_by_default = false;
};

// Reads latent attention and a dense MLP in every layer.
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
    config.Fail("qk_rope_head_dim",
                fmt::format("contradicts partial_rotary_factor, which gives {} rotary dimensions",
                            rope.rope.rotary_dim));
  }
  options.scale = LatentScale(g, rope);
  config.Ignore({"auto_map"});  // transformers now includes these classes
  // Training fields without effect here.
  config.Ignore({"aux_loss_alpha", "seq_aux", "ep_size"});

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

// Adds experts with DeepSeek-V3's router. `default_factor`: the factor on expert weights if the
// config has none.
ModelSpec ReadLatentDecoder(ConfigReader& config, int64_t default_dense, double default_factor) {
  config.Default("routed_scaling_factor", default_factor);
  ModelSpec spec = ReadLatentLayers(config, {});
  PutDeepSeekExperts(config, default_dense, ReadSigmoidExperts(config, spec.hidden_size), spec);
  return spec;
}

// DeepSeek-V2, V2-Lite and Coder-V2: experts with softmax scores; the weights of the chosen experts
// are not scaled to a sum of 1. A set of experts is ranked by its best expert, not by its two best
// as in DeepSeek-V3.
ModelSpec ReadDeepSeekV2(ConfigReader& config) {
  ModelSpec spec = ReadLatentLayers(config, {});
  for (LayerSpec& layer : spec.layers) layer.attention.latent->keeps_pairs = true;
  config.Require("mlp_bias", false);
  config.Require("norm_topk_prob", false);
  const std::string method = config.String("topk_method", "greedy");
  if (method != "greedy" && method != "group_limited_greedy")
    config.Fail("topk_method", "is not implemented. Supported: greedy, group_limited_greedy");
  config.Require("scoring_func", "softmax");
  config.Override("topk_method", nullptr);  // both fields mean something else in DeepSeek-V3
  config.Override("scoring_func", nullptr);
  config.Default("norm_topk_prob", false);
  if (method == "greedy") {
    config.Override("n_group", nullptr);
    config.Override("topk_group", nullptr);
  }
  config.Default("n_shared_experts", 2);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  experts.router.score = RouterScore::kSoftmax;
  experts.router.choice_bias = "";
  experts.router.set_terms = 1;
  PutDeepSeekExperts(config, 0, experts, spec);
  return spec;
}

// DeepSeek-V3, R1 and V3.1, and Kimi-K2, which only differs in sizes. Rope is interleaved, and the
// softmax scale includes the square of yarn's mscale.
ModelSpec ReadDeepSeekV3(ConfigReader& config) { return ReadLatentDecoder(config, 3, 2.5); }

// GLM-4.7-Flash: DeepSeek-V3's attention and experts, not GLM-4.7's despite its name. By default
// only the first layer is dense.
ModelSpec ReadGlm4MoeLite(ConfigReader& config) { return ReadLatentDecoder(config, 1, 1.8); }

// A.X K1: DeepSeek-V3 with a norm after the experts. Dense layers lack that norm.
ModelSpec ReadAxk1(ConfigReader& config) {
  ModelSpec spec = ReadLatentDecoder(config, 1, 2.5);
  for (LayerSpec& layer : spec.layers) {
    if (!layer.experts) continue;
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    const std::string inner = prefix + "mlp.post_mlp_layernorm.weight";
    layer.post_mlp_norm = {config.Stores(inner) ? inner : prefix + "post_mlp_layernorm.weight",
                           spec.hidden_size};
  }
  return spec;
}

// GLM-5 and DeepSeek-V3.2: latent attention with an indexer that picks index_topk keys for each
// query. In sequences of up to index_topk tokens every key is picked, so attention is dense. Longer
// sequences are refused, because sparse attention is not implemented.
ModelSpec ReadGlmMoeDsa(ConfigReader& config) {
  constexpr std::string_view kIndexed = "indexed_attention";  // name since transformers 5.24
  (void)ReadLayerTypes(config, {kIndexed, "deepseek_sparse_attention"},
                       [=](int64_t) { return kIndexed; });
  const int64_t most = config.OptionalSize("index_topk").value_or(2048);
  // Parts of the indexer, which dense attention does not need.
  config.Ignore({"index_head_dim", "index_n_heads", "indexer_types", "index_topk_freq",
                 "index_topk_pattern", "index_skip_topk_offset", "indexer_rope_interleave",
                 "index_share_for_mtp_iteration"});
  ModelSpec spec = ReadLatentDecoder(config, 3, 2.5);
  if (most < spec.max_positions) {
    spec.max_positions = most;
    spec.positions_limit =
        "index_topk; attention to more tokens is sparse, which is not implemented";
  }
  for (const char* name : {"wq_b.weight", "wk.weight", "k_norm.weight", "k_norm.bias",
                           "weights_proj.weight", "wq_b.weight_scale_inv", "wk.weight_scale_inv"}) {
    spec.skipped_suffixes.push_back(std::string(".self_attn.indexer.") + name);
  }
  return spec;
}

// MiniCPM3: latent attention and a dense MLP, with factors on embeddings, layer outputs and logits.
// Unlike in DeepSeek, rope is not interleaved (RopeLayout::kHalf), and v_head_dim may be missing.
ModelSpec ReadMiniCpm3(ConfigReader& config) {
  const int64_t hidden = config.Size("hidden_size");
  config.Default("rope_interleave", false);
  config.Default("v_head_dim", hidden / config.Size("num_attention_heads"));
  config.Require("mlp_bias", false);
  ModelSpec spec = ReadLatentLayers(config, {.tied_by_default = true});
  spec.embedding_multiplier = config.OptionalPositive("scale_emb").value_or(12.0);
  const double layers = static_cast<double>(spec.layers.size());
  config.Default("scale_depth", 1.4);
  const double depth = config.OptionalPositive("scale_depth").value_or(std::sqrt(layers));
  for (LayerSpec& layer : spec.layers) layer.residual_multiplier = depth / std::sqrt(layers);
  config.Default("dim_model_base", 256);
  const int64_t base = config.OptionalSize("dim_model_base").value_or(hidden);
  spec.logit_multiplier = static_cast<double>(base) / static_cast<double>(hidden);
  return spec;
}

// Mistral Small 4 and Large 3 (transformers 5, modeling_mistral4.py): experts with softmax scores,
// and queries scaled by position. The config gives the size of the position part of a head twice,
// directly and as partial_rotary_factor.
ModelSpec ReadMistral4(ConfigReader& config) {
  RequireRopeSettings(config);
  ModelSpec spec = ReadLatentLayers(config, {.position_scaling = true, .part_of_head = true});
  config.Default("first_k_dense_replace", 0);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  experts.router.score = RouterScore::kSoftmax;
  experts.router.choice_bias = "";
  experts.router.float32_logits = false;
  PutDeepSeekExperts(config, 0, experts, spec);
  return spec;
}

// Youtu-LLM: latent attention in a dense model. By default embedding and output head are tied.
ModelSpec ReadYoutu(ConfigReader& config) {
  config.Ignore({"embedding_initializer_range"});  // for training
  return ReadLatentLayers(config, {.tied_by_default = true});
}

}  // namespace

std::span<const Family> DeepSeekFamilies() {
  static constexpr Family kRows[] = {
      {"axk1", "AXK1ForCausalLM", ReadAxk1},
      {"deepseek_v2", "DeepseekV2ForCausalLM", ReadDeepSeekV2},
      {"deepseek_v3", "DeepseekV3ForCausalLM", ReadDeepSeekV3},
      {"deepseek_v32", "DeepseekV32ForCausalLM", ReadGlmMoeDsa},
      {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", ReadGlm4MoeLite},
      {"glm_moe_dsa", "GlmMoeDsaForCausalLM", ReadGlmMoeDsa},
      {"kimi_k2", "DeepseekV3ForCausalLM", ReadDeepSeekV3},
      {"minicpm3", "MiniCPM3ForCausalLM", ReadMiniCpm3},
      {"mistral4", "Mistral4ForCausalLM", ReadMistral4},
      {"youtu", "YoutuForCausalLM", ReadYoutu},
  };
  return kRows;
}

}  // namespace oscar
