// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// MiniMax-M2 and M3. In both, intermediate_size is the size of one expert.
#include <fmt/format.h>

#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Checks the fields by which releases describe variants. Only M2's variant is implemented.
void RequireM2(ConfigReader& config) {
  config.Require("qk_norm_type", "per_layer");
  config.Require("use_qk_norm", true);
  config.Require("scoring_func", "sigmoid");
  config.Require("use_routing_bias", true);
  config.Require("shared_intermediate_size", 0);
  config.Require("sliding_window", nullptr);
  for (const char* key :
       {"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta"}) {
    config.Require(key, 1.0);
  }
  const Json* kinds = config.Find("attn_type_list");
  if (kinds != nullptr && (!kinds->is_array() || std::ranges::any_of(*kinds, [](const Json& kind) {
        return kind != 1;
      }))) {
    config.Fail("attn_type_list",
                "is not implemented: linear attention. Supported: a list with only 1");
  }
  // Fields without effect: auto_map (transformers now includes these classes), sizes of parts that
  // M2 lacks, multi-token prediction, and a server's length limit.
  config.Ignore({"auto_map", "mlp_intermediate_size", "shared_moe_mode", "use_mtp",
                 "num_mtp_modules", "mtp_transformer_layers", "max_model_len"});
}

// MiniMax-M2 to M2.7: experts in every layer, rope on a part of each head, norms of queries and
// keys across all heads.
ModelSpec ReadMiniMaxM2(ConfigReader& config) {
  RequireM2(config);
  DenseDecoderOptions options;
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.rope.default_theta = 5e6;
  options.rope.default_partial = 1.0;
  options.dense_mlp = false;
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts = ReadBlockSparseExperts(config, spec.hidden_size);
  experts.router.score = RouterScore::kSigmoid;
  const std::string in_gate = "block_sparse_moe.gate.e_score_correction_bias";
  experts.router.choice_bias = config.Stores(config.LayerPrefix(0) + in_gate)
                                   ? in_gate
                                   : "block_sparse_moe.e_score_correction_bias";
  PutExperts(config, experts, {}, spec);
  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  for (int64_t i = 0; config.StoresPrefix(config.LayerPrefix(num_layers + i)); ++i)
    spec.skipped_prefixes.push_back(config.LayerPrefix(num_layers + i));
  return spec;
}

// Returns the number of tokens up to which sparse attention equals dense attention; nothing if no
// layer is sparse.
std::optional<int64_t> ReadDenseLimit(ConfigReader& config) {
  int64_t block = config.OptionalSize("index_block_size").value_or(128);
  int64_t blocks = config.OptionalSize("index_topk_blocks").value_or(16);
  const auto types = ReadLayerTypes(config, {"full_attention", "minimax_m3_sparse"},
                                    [](int64_t) { return std::string_view("full_attention"); });
  bool sparse = std::ranges::find(types, "minimax_m3_sparse") != types.end();
  // Releases nest these settings under other names.
  if (const Json* old = config.Find("sparse_attention_config"); old != nullptr) {
    if (!old->is_object()) config.Fail("sparse_attention_config", "must be an object");
    ConfigReader settings(*old, config.what() + ": sparse_attention_config");
    block = settings.OptionalSize("sparse_block_size").value_or(block);
    blocks = settings.OptionalSize("sparse_topk_blocks").value_or(blocks);
    const Json* layers = settings.Find("sparse_attention_freq");
    if (layers != nullptr && !layers->is_array())
      settings.Fail("sparse_attention_freq", "must be a list of 0 and 1");
    if (layers != nullptr)
      sparse = std::ranges::any_of(*layers, [](const Json& flag) { return flag != 0; });
  }
  // Parts of the indexer, which dense attention does not need.
  config.Ignore({"index_n_heads", "index_head_dim", "index_local_blocks"});
  return sparse ? std::optional(block * blocks) : std::nullopt;
}

std::vector<bool> ReadMiniMaxSparseLayers(ConfigReader& config) {
  const Json* flags = config.Find("moe_layer_freq");
  if (flags == nullptr || !flags->is_array()) return ReadDeepSeekSparseLayers(config, 0);
  std::vector<bool> sparse;
  for (const Json& flag : *flags) sparse.push_back(flag != 0);
  if (static_cast<int64_t>(sparse.size()) != ReadNumLayers(config))
    config.Fail("moe_layer_freq", "must have a number for each layer");
  config.Override("moe_layer_freq", nullptr);
  config.Ignore({"first_k_dense_replace"});  // repeats the list
  return sparse;
}

// MiniMax-M3 (text part): norms (1 + w), clamped gates as in gpt-oss in MLPs and experts, and
// experts with sigmoid scores. In sparse layers, a query only sees index_topk_blocks blocks of
// keys. In sequences of up to that many blocks, every block is picked, so attention is dense.
// Longer sequences are refused, because sparse attention is not implemented.
ModelSpec ReadMiniMaxM3(ConfigReader& config) {
  DenseDecoderOptions options;
  options.norm = NormKind::kOnePlus;
  options.qk_norm = true;
  options.default_head_dim = 128;
  options.rope.default_theta = 5e6;
  options.rope.default_partial = 1.0;
  options.dense_mlp = false;
  config.Require("qk_norm_type", "per_head");
  config.Require("use_qk_norm", true);
  config.Require("use_gemma_norm", true);
  config.Require("attention_output_gate", false);
  config.Require("n_shared_experts", 1);
  // Fields without effect: multi-token prediction.
  config.Ignore({"num_mtp_modules", "num_nextn_predict_layers"});
  const std::string activation = config.String("hidden_act", "silu");
  if (activation != "silu" && activation != "swigluoai")
    config.Fail("hidden_act", "is not implemented. Supported: silu, swigluoai");
  config.Override("hidden_act", "silu");  // the clamped gate replaces it
  // transformers only reads partial_rotary_factor, vLLM only rotary_dim.
  const int64_t head_dim = config.OptionalSize("head_dim").value_or(128);
  const int64_t rotary_dim = config.OptionalSize("rotary_dim").value_or(head_dim);
  config.Override("rotary_dim", nullptr);
  ModelSpec spec = ReadDenseDecoder(config, options);
  const int64_t turning = spec.layers[0].attention.rope.rotary_dim;
  // transformers 5 writes the default rotary_dim even if rope_parameters rotate whole heads.
  const bool whole_heads = turning == head_dim && config.Has("rope_parameters");
  if (rotary_dim < head_dim && turning != rotary_dim && !whole_heads) {
    config.Fail("rotary_dim",
                fmt::format("contradicts partial_rotary_factor, which gives {} rotary dimensions",
                            turning));
  }
  const auto limit = ReadDenseLimit(config);
  if (limit && *limit < spec.max_positions) {
    spec.max_positions = *limit;
    spec.positions_limit =
        "index_topk_blocks; attention to more blocks is sparse, which is not implemented";
  }

  ClampedGate gate;
  gate.alpha = config.OptionalPositive("swiglu_alpha").value_or(gate.alpha);
  gate.limit = config.OptionalPositive("swiglu_limit").value_or(gate.limit);
  const std::vector<bool> sparse = ReadMiniMaxSparseLayers(config);
  const int64_t dense_size = config.OptionalSize("dense_intermediate_size").value_or(12288);
  for (LayerSpec& layer : spec.layers) {
    options.fused_gate_up =
        config.StoresPrefix(config.LayerPrefix(layer.layer_id) + "mlp.gate_up_proj.");
    layer.mlp = DenseMlp(config.LayerPrefix(layer.layer_id) + "mlp.", spec.hidden_size, dense_size,
                         options, Activation::kSilu);
    layer.mlp.clamped_gate = gate;
  }
  const std::string first = config.LayerPrefix(FirstSparse(sparse));
  const bool written = config.StoresPrefix(first + "mlp.gate.");  // written by transformers 5
  const std::string block = written ? "mlp." : "block_sparse_moe.";
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"), block + "gate");
  config.Require("moe_intermediate_size", experts.intermediate_size);  // second name of that field
  experts.clamped_gate = gate;
  experts.router.score = RouterScore::kSigmoid;
  experts.router.choice_bias =
      block + (config.Stores(first + block + "gate.e_score_correction_bias")
                   ? "gate.e_score_correction_bias"
                   : "e_score_correction_bias");
  experts.router.normalize = true;
  experts.router.scale = config.OptionalPositive("routed_scaling_factor").value_or(1.0);
  config.Require("scoring_func", "sigmoid");
  config.Require("use_routing_bias", true);
  const int64_t shared = config.OptionalCount("shared_intermediate_size").value_or(3072);
  NameSharedExpert(block + "shared_experts.", shared, experts);
  const std::string both = block + "shared_experts.gate_up_proj";
  if (shared > 0 && config.StoresPrefix(first + both + ".")) {
    experts.shared_gate_proj = Rows(both, spec.hidden_size, 0, shared, 2 * shared);
    experts.shared_up_proj = Rows(both, spec.hidden_size, shared, shared, 2 * shared);
  }
  NameExperts(
      config, FirstSparse(sparse),
      {.separate = block + "experts.", .gate = "w1.weight", .up = "w3.weight", .down = "w2.weight"},
      experts);
  PutExperts(config, experts, sparse, spec);
  for (const char* part : {"q_proj", "k_proj", "q_norm", "k_norm"}) {
    spec.skipped_suffixes.push_back(fmt::format(".self_attn.index_{}.weight", part));
    spec.skipped_suffixes.push_back(fmt::format(".self_attn.indexer.{}.weight", part));
  }
  return spec;
}

}  // namespace

std::span<const Family> MiniMaxFamilies() {
  static constexpr Family kRows[] = {
      {"minimax_m2", "MiniMaxM2ForCausalLM", ReadMiniMaxM2},
      {"minimax_m3", "MiniMaxM3ForCausalLM", ReadMiniMaxM3},
      {"minimax_m3_vl_text", "MiniMaxM3VLForCausalLM", ReadMiniMaxM3},
  };
  return kRows;
}

}  // namespace oscar
