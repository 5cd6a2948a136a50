// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/qwen_hybrid.h"

#include <fmt/format.h>

namespace oscar {
namespace {

constexpr std::string_view kFullLayer = "full_attention", kLinearLayer = "linear_attention";

GatedDeltaNetSpec ReadDeltaNet(ConfigReader& config, bool fused) {
  GatedDeltaNetSpec net;
  net.fused = fused;
  net.num_k_heads = config.Size("linear_num_key_heads");
  net.num_v_heads = config.Size("linear_num_value_heads");
  net.k_head_dim = config.Size("linear_key_head_dim");
  net.v_head_dim = config.Size("linear_value_head_dim");
  net.conv_kernel = config.Size("linear_conv_kernel_dim");
  if (net.num_v_heads % net.num_k_heads != 0) {
    config.Fail("linear_num_value_heads",
                fmt::format("must be a multiple of linear_num_key_heads {}", net.num_k_heads));
  }
  return net;
}

GatedDeltaNetSpec NamedDeltaNet(GatedDeltaNetSpec net, const std::string& prefix,
                                int64_t hidden_size) {
  const auto in = [&](const char* name, int64_t out_features) {
    return Linear(prefix + name, hidden_size, out_features);
  };
  if (net.fused) {
    net.qkvz = in("in_proj_qkvz", net.conv_width() + net.value_width());
    net.ba = in("in_proj_ba", 2 * net.num_v_heads);
  } else {
    net.qkv = in("in_proj_qkv", net.conv_width());
    net.z = in("in_proj_z", net.value_width());
    net.b = in("in_proj_b", net.num_v_heads);
    net.a = in("in_proj_a", net.num_v_heads);
  }
  net.conv = prefix + "conv1d.weight";
  net.a_log = prefix + "A_log";
  net.dt_bias = prefix + "dt_bias";
  net.out_norm = {prefix + "norm.weight", net.v_head_dim};
  net.out = Linear(prefix + "out_proj", net.value_width(), hidden_size);
  return net;
}

}  // namespace

ModelSpec ReadQwenHybrid(ConfigReader& config, bool fused, bool dense_mlp) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.norm = NormKind::kOnePlus;
  options.default_head_dim = 256;
  options.rope.default_partial = 0.25;
  options.rope.text_of_mrope = true;
  options.dense_mlp = dense_mlp;
  ModelSpec spec = ReadDenseDecoder(config, options);
  config.Require("attn_output_gate", true);
  config.Require("output_gate_type", "swish");  // for the norm after the delta rule
  // Fields without effect: the type of a kernel's state, layers that predict further tokens.
  for (const char* key :
       {"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"}) {
    (void)config.Find(key);
  }

  const int64_t interval = config.OptionalSize("full_attention_interval").value_or(4);
  const std::vector<std::string> types = ReadLayerTypes(
      config, {kFullLayer, kLinearLayer},
      [&](int64_t layer) { return (layer + 1) % interval == 0 ? kFullLayer : kLinearLayer; });
  const GatedDeltaNetSpec net = ReadDeltaNet(config, fused);
  for (LayerSpec& layer : spec.layers) {
    if (types[static_cast<size_t>(layer.layer_id)] == kFullLayer) {
      layer.attention.gated = true;
      layer.attention.q.out_features *= 2;
      continue;
    }
    layer.attention = {};
    layer.delta_net =
        NamedDeltaNet(net, config.LayerPrefix(layer.layer_id) + "linear_attn.", spec.hidden_size);
  }
  spec.skipped_prefixes.push_back("mtp.");
  return spec;
}

ExpertsSpec ReadQwenHybridExperts(ConfigReader& config, int64_t hidden_size) {
  ExpertsSpec experts =
      ReadExperts(config, hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  NameSharedExpert("mlp.shared_expert.", config.Size("shared_expert_intermediate_size"), experts);
  experts.shared_gate = Linear("mlp.shared_expert_gate", hidden_size, 1);
  return experts;
}

}  // namespace oscar
