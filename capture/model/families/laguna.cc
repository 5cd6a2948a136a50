// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Laguna: the attention output has a softplus gate, per head or per channel (`gating`: true means
// per head). Sliding-window and full-attention layers have different numbers of query heads and
// different ropes. Experts have sigmoid scores. The scaling factor applies only to routed experts,
// not to the shared expert.
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

ModelSpec ReadLaguna(ConfigReader& config) {
  RequireRopeSettings(config);
  DenseDecoderOptions options = LlamaOptions(config, 500000.0);
  options.qk_norm = true;
  options.default_head_dim = 128;
  options.rope.default_partial = 1.0;
  options.rope.layer_type = "full_attention";
  options.windows = ReadWindows(config, ReadWindow(config, 512), ReadNumLayers(config));
  if (AnySlides(options.windows)) {
    options.sliding_rope = options.rope;
    options.sliding_rope->layer_type = "sliding_attention";
    options.sliding_rope->scaled = false;
  }
  ModelSpec spec = ReadDenseDecoder(config, options);
  const Json* heads = config.Find("num_attention_heads_per_layer");
  if (heads != nullptr && (!heads->is_array() || heads->size() != spec.layers.size())) {
    config.Fail("num_attention_heads_per_layer",
                fmt::format("must be a list of {} numbers", spec.layers.size()));
  }
  const Json* gating = config.Find("gating");
  const bool by_head = gating == nullptr || *gating == true || *gating == "per-head";
  if (!by_head && *gating != "per-element")
    config.Fail("gating", "is not implemented. Supported: true, per-head, per-element");
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& attention = layer.attention;
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "self_attn.";
    if (heads != nullptr) {
      const Json& count = (*heads)[static_cast<size_t>(layer.layer_id)];
      if (!count.is_number_integer() || count < 1 || count > 65536 ||
          count.get<int64_t>() % attention.num_kv_heads != 0) {
        config.Fail("num_attention_heads_per_layer", "must be multiples of num_key_value_heads");
      }
      attention.num_q_heads = count.get<int64_t>();
    }
    const int64_t width = attention.num_q_heads * attention.head_dim;
    attention.q = Linear(prefix + "q_proj", spec.hidden_size, width, options.qkv_bias);
    attention.o = Linear(prefix + "o_proj", width, spec.hidden_size, options.o_bias);
    attention.gate =
        Linear(prefix + "g_proj", spec.hidden_size, by_head ? attention.num_q_heads : width);
    attention.gate_softplus = true;
  }
  config.Require("moe_apply_router_weight_on_input", false);
  config.Require("moe_router_logit_softcapping", 0.0);
  config.Default("routed_scaling_factor",
                 config.OptionalPositive("moe_routed_scaling_factor").value_or(1.0));
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  const std::string first = config.LayerPrefix(FirstSparse(sparse));
  for (const char* name : {"mlp.e_score_correction_bias", "mlp.experts.e_score_correction_bias"})
    if (config.Stores(first + name)) experts.router.choice_bias = name;
  NameSharedExpert(config.StoresPrefix(first + "mlp.shared_expert.") ? "mlp.shared_expert."
                                                                     : "mlp.shared_experts.",
                   config.Size("shared_expert_intermediate_size"), experts);
  PutNamedExperts(config, {}, sparse, experts, spec);
  return spec;
}

}  // namespace

std::span<const Family> LagunaFamilies() {
  static constexpr Family kRows[] = {
      {"laguna", "LagunaForCausalLM", ReadLaguna},
  };
  return kRows;
}

}  // namespace oscar
