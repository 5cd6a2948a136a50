// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Hunyuan dense 0.5B to 7B and A13B with experts: norms of queries and keys after rope; a "dynamic"
// rope whose alpha increases theta once for all lengths. Every layer has experts and a shared
// expert; their size is intermediate_size.
#include <fmt/format.h>

#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {

namespace {

DenseDecoderOptions HunYuanOptions(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.q_norm_name = "query_layernorm";
  options.k_norm_name = "key_layernorm";
  options.rope.default_theta = 10000.0;
  options.rope.alpha = true;
  config.Require("use_qk_norm", true);
  config.Require("use_cla", false);  // keys and values shared by neighbouring layers
  config.Require("use_rotary_pos_emb", true);
  config.Require("norm_type", "rms");
  if (const auto head_dim = config.OptionalSize("head_dim"))
    config.Require("attention_head_dim", *head_dim);
  // Fields without effect: how many layers would share, a classifier's parts, ids of tokens.
  for (const char* key :
       {"cla_share_factor", "add_classification_head", "class_num", "pool_type", "dense_list",
        "eod_token_id", "eod_id", "im_end_id", "im_newline_id", "im_start_id", "image_token_id",
        "mask_init_id", "org_vocab_size", "pad_id", "text_end_id", "text_start_id"}) {
    (void)config.Find(key);
  }
  return options;
}

ModelSpec NormAfterRope(ModelSpec spec) {
  for (LayerSpec& layer : spec.layers) layer.attention.norm_after_rope = true;
  return spec;
}

// A number, or a list with the same number for every layer.
int64_t SameInAllLayers(ConfigReader& config, std::string_view key, int64_t otherwise) {
  const Json* value = config.Find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_array()) return config.Size(key);
  const bool same = !value->empty() && value->front().is_number_integer() && value->front() > 0 &&
                    value->front() < 65536 &&
                    std::ranges::all_of(*value, [&](const Json& x) { return x == value->front(); });
  if (!same) config.Fail(key, "is not implemented. Supported: one number for all layers");
  return value->front().get<int64_t>();
}

}  // namespace

ModelSpec ReadHunYuanDense(ConfigReader& config) {
  return NormAfterRope(ReadDenseDecoder(config, HunYuanOptions(config)));
}

ModelSpec ReadHunYuanMoe(ConfigReader& config) {
  DenseDecoderOptions options = HunYuanOptions(config);
  options.dense_mlp = false;
  ModelSpec spec = NormAfterRope(ReadDenseDecoder(config, options));
  const int64_t size = config.Size("intermediate_size");
  if (SameInAllLayers(config, "moe_intermediate_size", size) != size)
    config.Fail("moe_intermediate_size", fmt::format("must be intermediate_size = {}", size));
  if (SameInAllLayers(config, "num_shared_expert", 1) != 1)
    config.Fail("num_shared_expert", "is not implemented. Supported: 1");
  config.Override("num_experts", SameInAllLayers(config, "num_experts", 1));
  config.Override("num_experts_per_tok", SameInAllLayers(config, "moe_topk", 1));
  for (const char* key : {"use_mixed_mlp_moe", "norm_topk_prob"}) config.Require(key, true);
  for (const char* key : {"use_mla", "group_limited_greedy"}) config.Require(key, false);
  config.Require("moe_layer_num_skipped", 0);
  config.Require("routed_scaling_factor", 1.0);
  // Fields without effect: sizes of latent attention, which is off, and training settings.
  for (const char* key : {"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                          "v_head_dim", "moe_drop_tokens", "moe_random_routing_dropped_token",
                          "n_group", "topk_group", "capacity_factor"}) {
    (void)config.Find(key);
  }
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, size, "mlp.gate.wg");
  experts.router.float32_logits = true;
  experts.router.normalize = true;
  NameSharedExpert("mlp.shared_mlp.", size, experts);
  PutNamedExperts(config, {}, std::vector<bool>(spec.layers.size(), true), experts, spec);
  return spec;
}

}  // namespace oscar
