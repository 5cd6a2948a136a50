// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// DBRX (transformers 5, modeling_dbrx.py): norms subtract the mean and have no bias. Queries, keys
// and values come from one fused projection and are clipped. All experts of a layer are
// concatenated in three tensors. Trap: releases have rope_theta in attn_config, but transformers
// only reads the one in rope_parameters.
#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

ModelSpec ReadDbrx(ConfigReader& config) {
  static const Json kNothing = Json::object();
  const auto part = [&](const char* key) {
    const Json* found = config.Find(key);
    return ConfigReader(found == nullptr ? kNothing : *found, config.what() + ": " + key);
  };
  ConfigReader attention = part("attn_config"), ffn = part("ffn_config");
  for (const auto& [key, own] : {std::pair("hidden_size", "d_model"),
                                 {"max_position_embeddings", "max_seq_len"},
                                 {"num_hidden_layers", "n_layers"},
                                 {"num_attention_heads", "n_heads"}}) {
    config.SecondName(key, own);
  }
  config.Override("num_key_value_heads", attention.OptionalSize("kv_n_heads").value_or(1));
  config.Override("layer_norm_eps", 1e-5);  // LayerNorm's default
  DenseDecoderOptions options;
  options.norm = NormKind::kLayerNorm;
  options.norms = {"norm_attn_norm.norm_1", "", "norm_attn_norm.norm_2", ""};
  options.eps_field = "layer_norm_eps";
  options.rope.default_theta = attention.OptionalPositive("rope_theta").value_or(10000.0);
  options.dense_mlp = false;
  config.Ignore({"emb_pdrop"});
  config.NameLayers("transformer.", "blocks.");
  ModelSpec spec = ReadDenseDecoder(config, options);
  const double clamp = attention.OptionalPositive("clip_qkv").value_or(0.0);
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "norm_attn_norm.attn.";
    AttentionSpec& a = layer.attention;
    const int64_t q = a.num_q_heads * a.head_dim, kv = a.num_kv_heads * a.head_dim;
    a.q = Rows(prefix + "Wqkv", spec.hidden_size, 0, q, q + 2 * kv);
    a.k = Rows(prefix + "Wqkv", spec.hidden_size, q, kv, q + 2 * kv);
    a.v = Rows(prefix + "Wqkv", spec.hidden_size, q + kv, kv, q + 2 * kv);
    a.o = Linear(prefix + "out_proj", q, spec.hidden_size);
    a.clamp = clamp;
  }
  NameEnds("transformer.wte", "transformer.norm_f", spec);

  config.Default("num_experts", ffn.OptionalSize("moe_num_experts").value_or(4));
  config.Default("num_experts_per_tok", ffn.OptionalSize("moe_top_k").value_or(1));
  const Json* activation = ffn.Find("ffn_act_fn");
  if (activation != nullptr && *activation != Json{{"name", "silu"}})
    ffn.Fail("ffn_act_fn", "is not implemented. Supported: {\"name\":\"silu\"}");
  ffn.Require("hidden_size", spec.hidden_size);
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, ffn.OptionalSize("ffn_hidden_size").value_or(3584),
                  "ffn.router.layer");
  // Expert weights are divided by their p-norm. This field is p; null means no division.
  ffn.Require("moe_normalize_expert_weights", 1.0);
  experts.router.normalize =
      !ffn.Has("moe_normalize_expert_weights") || ffn.Find("moe_normalize_expert_weights");
  experts.fused = experts.rows_below = true;
  experts.gate_up = "ffn.experts.mlp.w1";
  experts.up = "ffn.experts.mlp.v1";
  experts.down = "ffn.experts.mlp.w2";
  PutExperts(config, experts, {}, spec);
  // These fields are only used in training.
  attention.Ignore({"attn_pdrop", "seq_length"});
  ffn.Ignore({"moe_jitter_eps", "moe_loss_weight"});
  for (ConfigReader* nested : {&attention, &ffn}) {
    for (const char* key : {"model_type", "architectures", "dtype"}) (void)nested->Find(key);
    nested->Finish({});
  }
  return spec;
}

}  // namespace

std::span<const Family> DbrxFamilies() {
  static constexpr Family kRows[] = {
      {"dbrx", "DbrxForCausalLM", ReadDbrx},
  };
  return kRows;
}

}  // namespace oscar
