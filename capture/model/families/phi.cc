// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Microsoft's Phi.
#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Phi-1, Phi-1.5 and Phi-2 (transformers 5, modeling_phi.py): attention and MLP run in parallel
// after one norm, which subtracts the mean. The MLP has no gate. Rope covers a part of the head.
// Everything has a bias, even the output head.
ModelSpec ReadPhi(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = true;
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.norms = {"input_layernorm", "", "", ""};
  options.qk_norm = config.Bool("qk_layernorm", false);
  options.q_norm_name = "q_layernorm";
  options.k_norm_name = "k_layernorm";
  options.eps_field = "layer_norm_eps";
  options.default_activation = "gelu_new";
  options.gated_mlp = false;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 0.5;
  config.Default("layer_norm_eps", 1e-5);
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    const int64_t size = layer.mlp.intermediate_size;
    layer.parallel = true;
    layer.attention.o =
        Linear(prefix + "self_attn.dense", layer.attention.o.in_features, spec.hidden_size, true);
    layer.mlp.up = Linear(prefix + "mlp.fc1", spec.hidden_size, size, true);
    layer.mlp.down = Linear(prefix + "mlp.fc2", size, spec.hidden_size, true);
  }
  spec.final_norm.weight = config.prefix() + "final_layernorm.weight";
  spec.final_norm.bias = config.prefix() + "final_layernorm.bias";
  spec.head.bias = "lm_head.bias";
  return spec;
}

// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini. q, k and v are stored as one tensor, gate and up as
// another. Rope covers a part of the head. Longrope has two lists of factors; the length of a
// sequence decides which one applies (transformers 5, longrope_frequency_update). So short and long
// documents have different frequencies.
ModelSpec ReadPhi3(ConfigReader& config) {
  DenseDecoderOptions options;
  // Options of Phi-4-mini's own code that no release uses.
  config.Require("full_attn_mod", 1);
  config.Require("interpolate_factor", 1);
  config.Require("lm_head_bias", false);
  options.fused_qkv = options.fused_gate_up = true;
  options.rope.default_theta = 10000.0;
  options.rope.default_partial = 1.0;
  options.windows = ReadUniformWindows(config, ReadWindow(config));
  return ReadDenseDecoder(config, options);
}

// Phi-4-multimodal, as stored by transformers, contains the same model next to other modalities.
ModelSpec ReadPhi4Multimodal(ConfigReader& config) {
  config.Ignore({"audio_config", "vision_config"});
  ModelSpec spec = ReadPhi3(config);
  spec.skipped_prefixes.push_back("model.embed_tokens_extend.");
  return spec;
}

// Phi-3.5-MoE and Phi-mini-MoE: norms subtract the mean and have a bias. Each token gets two
// experts, each weighted by a softmax over experts with similar logits (SparseMixer, arXiv
// 2409.12136). short_mscale and long_mscale are factors on cosines and sines. Unlike Microsoft's
// code, transformers uses the short factors for long sequences too, so long sequences are refused.
ModelSpec ReadPhiMoe(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 1e6);
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.rope.mscales = true;
  options.dense_mlp = false;
  options.windows = ReadUniformWindows(config, ReadWindow(config));
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (config.Bool("lm_head_bias", false)) spec.head.bias = "lm_head.bias";
  const RopeSpec& rope = spec.layers[0].attention.rope;
  if (rope.kind == RopeKind::kLongRope && rope.original_max_positions < spec.max_positions) {
    spec.max_positions = rope.original_max_positions;
    spec.positions_limit =
        "original_max_position_embeddings; for longer sequences, implementations of this family "
        "disagree";
  }
  config.Ignore({"input_jitter_noise"});  // used in training
  const bool released = config.StoresPrefix(config.LayerPrefix(0) + "block_sparse_moe.");
  const std::string block = released || !config.knows_names() ? "block_sparse_moe." : "mlp.";
  ExpertsSpec experts = ReadExperts(
      config, spec.hidden_size, config.Size("intermediate_size"),
      block + (config.StoresPrefix(config.LayerPrefix(0) + block + "router.") ? "router" : "gate"));
  config.Require("num_experts_per_tok", 2);
  experts.router.score = RouterScore::kSparseMixer;
  experts.router.mixer_distance = 2 * config.OptionalNumber("router_jitter_noise").value_or(0.01);
  NameExperts(config, 0,
              {.separate = block + "experts.",
               .gate = "w1.weight",
               .up = "w3.weight",
               .down = "w2.weight",
               .fused_gate_up = block + "experts.gate_up_proj",
               .fused_down = block + "experts.down_proj"},
              experts);
  PutExperts(config, experts, {}, spec);
  return spec;
}

}  // namespace

std::span<const Family> PhiFamilies() {
  static constexpr Family kRows[] = {
      {"phi", "PhiForCausalLM", ReadPhi},
      {"phi3", "Phi3ForCausalLM", ReadPhi3},
      {"phi4_multimodal", "Phi4MultimodalForCausalLM", ReadPhi4Multimodal},
      {"phimoe", "PhimoeForCausalLM", ReadPhiMoe},
  };
  return kRows;
}

}  // namespace oscar
