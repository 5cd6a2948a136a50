// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tencent's Hunyuan 1 and 3. Trap: queries and keys have norms after rope in Hunyuan 1, and before
// it in Hunyuan 3.
#include <fmt/format.h>

#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Hunyuan dense 0.5B to 7B, and A13B with experts: QK norms after rope, and a "dynamic" rope whose
// alpha increases theta by the same factor for all lengths.
DenseDecoderOptions HunYuanOptions(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.qk_norm = true;
  options.q_norm_name = "query_layernorm";
  options.k_norm_name = "key_layernorm";
  options.rope.alpha = true;
  config.Require("use_qk_norm", true);
  config.Require("use_cla", false);  // neighbouring layers would share keys and values
  config.Require("use_rotary_pos_emb", true);
  config.Require("norm_type", "rms");
  if (const auto head_dim = config.OptionalSize("head_dim"))
    config.Require("attention_head_dim", *head_dim);
  // Fields without effect: a setting of use_cla, a classifier's settings, and token ids.
  config.Ignore({"cla_share_factor", "add_classification_head", "class_num", "pool_type",
                 "dense_list", "eod_token_id", "eod_id", "im_end_id", "im_newline_id",
                 "im_start_id", "image_token_id", "mask_init_id", "org_vocab_size", "pad_id",
                 "text_end_id", "text_start_id"});
  return options;
}

ModelSpec ReadHunYuanLayers(ConfigReader& config, const DenseDecoderOptions& options) {
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) layer.attention.norm_after_rope = true;
  return spec;
}

ModelSpec ReadHunYuanDense(ConfigReader& config) {
  return ReadHunYuanLayers(config, HunYuanOptions(config));
}

// Reads a number, or a list with the same number for every layer.
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

// Every layer has experts and a shared expert of size intermediate_size.
ModelSpec ReadHunYuanMoe(ConfigReader& config) {
  DenseDecoderOptions options = HunYuanOptions(config);
  options.dense_mlp = false;
  ModelSpec spec = ReadHunYuanLayers(config, options);
  const int64_t size = config.Size("intermediate_size");
  if (SameInAllLayers(config, "moe_intermediate_size", size) != size)
    config.Fail("moe_intermediate_size", fmt::format("must equal intermediate_size = {}", size));
  if (SameInAllLayers(config, "num_shared_expert", 1) != 1)
    config.Fail("num_shared_expert", "is not implemented. Supported: 1");
  config.Override("num_experts", SameInAllLayers(config, "num_experts", 1));
  config.Override("num_experts_per_tok", SameInAllLayers(config, "moe_topk", 1));
  for (const char* key : {"use_mixed_mlp_moe", "norm_topk_prob"}) config.Require(key, true);
  for (const char* key : {"use_mla", "group_limited_greedy"}) config.Require(key, false);
  config.Require("moe_layer_num_skipped", 0);
  config.Require("routed_scaling_factor", 1.0);
  // Fields without effect: sizes of latent attention, which is off, and training settings.
  config.Ignore({"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                 "v_head_dim", "moe_drop_tokens", "moe_random_routing_dropped_token", "n_group",
                 "topk_group", "capacity_factor"});
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, size, "mlp.gate.wg");
  experts.router.float32_logits = true;
  experts.router.normalize = true;
  NameSharedExpert("mlp.shared_mlp.", size, experts);
  PutNamedExperts(config, {}, {}, experts, spec);
  return spec;
}

// Hunyuan 3 (HY 2.0): experts with sigmoid scores and a bias for the choice, and a shared expert.
// Expert weights are multiplied by router_scaling_factor. The bias is stored next to the router,
// not in it.
ModelSpec ReadHyV3(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 11158840.0);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.qk_norm = true;
  config.Require("qk_norm", true);
  if (options.mlp_bias)
    config.Fail("mlp_bias", "is not implemented: biases of experts. Supported: false");
  ModelSpec spec = ReadDenseDecoder(config, options);
  config.Default("routed_scaling_factor",
                 config.OptionalPositive("router_scaling_factor").value_or(2.826));
  config.Default("n_shared_experts", config.OptionalCount("num_shared_experts").value_or(1));
  for (const char* key : {"route_norm", "moe_router_use_sigmoid", "moe_router_enable_expert_bias"})
    config.Require(key, true);
  // These only affect rounding in bfloat16.
  config.Ignore(
      {"enable_moe_fp32_combine", "enable_attention_fp32_softmax", "enable_lm_head_fp32"});
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const int64_t first = FirstSparse(ReadDeepSeekSparseLayers(config, 1));
  if (!config.knows_names() || config.StoresPrefix(config.LayerPrefix(first) + "mlp.router.")) {
    experts.router.logits.weight = "mlp.router.gate.weight";
    experts.router.choice_bias = "mlp.expert_bias";
    NameSharedExpert("mlp.shared_mlp.", experts.shared_size, experts);
  }
  PutDeepSeekExperts(config, 1, experts, spec);
  return spec;
}

}  // namespace

std::span<const Family> HunYuanFamilies() {
  static constexpr Family kRows[] = {
      {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", ReadHunYuanDense},
      {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", ReadHunYuanMoe},
      {"hy_v3", "HYV3ForCausalLM", ReadHyV3},
  };
  return kRows;
}

}  // namespace oscar
