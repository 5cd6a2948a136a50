// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/experts_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace oscar {

int64_t ReadNumExperts(ConfigReader& config) {
  std::optional<int64_t> count;
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    const auto value = config.OptionalSize(key);
    if (!value) continue;
    if (count && *count != *value)
      config.Fail(key, fmt::format("contradicts the other number of experts, {}", *count));
    count = value;
  }
  if (!count) config.Fail("num_experts", "is missing: an integer is needed");
  return *count;
}

ExpertsSpec ReadExperts(ConfigReader& config, int64_t hidden_size, int64_t intermediate_size,
                        const std::string& router) {
  ExpertsSpec experts;
  experts.num_experts = ReadNumExperts(config);
  experts.hidden_size = hidden_size;
  experts.intermediate_size = intermediate_size;
  experts.activation = ReadActivation(config, "hidden_act", "silu");
  experts.router.logits = Linear(router, hidden_size, experts.num_experts);
  experts.router.top_k = config.Size("num_experts_per_tok");
  if (experts.router.top_k > experts.num_experts) {
    config.Fail("num_experts_per_tok",
                fmt::format("is larger than the number of experts, {}", experts.num_experts));
  }
  return experts;
}

void NameExperts(const ConfigReader& config, int64_t sparse_layer, const ExpertNames& names,
                 ExpertsSpec& experts) {
  const std::string layer = config.LayerPrefix(sparse_layer);
  const bool separate = config.StoresPrefix(layer + names.separate + "0.");
  // A quantized tensor's name is longer: gate_up_proj_blocks, gate_up_proj.weight_packed.
  const bool fused = config.StoresPrefix(layer + names.fused_gate_up);
  experts.fused = fused || (names.usually_fused && !separate);
  if (experts.fused) {
    experts.gate_up = names.fused_gate_up;
    experts.down = names.fused_down;
    return;
  }
  experts.prefix = names.separate;
  experts.gate_name = names.gate;
  experts.up_name = names.up;
  experts.down_name = names.down;
}

ExpertsSpec ReadBlockSparseExperts(ConfigReader& config, int64_t hidden_size) {
  ExpertsSpec experts =
      ReadExperts(config, hidden_size, config.Size("intermediate_size"), "block_sparse_moe.gate");
  experts.router.normalize = true;
  NameExperts(config, 0,
              {.separate = "block_sparse_moe.experts.",
               .gate = "w1.weight",
               .up = "w3.weight",
               .down = "w2.weight"},
              experts);
  return experts;
}

void NameSharedExpert(const std::string& prefix, int64_t intermediate_size, ExpertsSpec& experts) {
  experts.shared_size = intermediate_size;
  if (intermediate_size == 0) return;
  const int64_t hidden = experts.hidden_size;
  experts.shared_gate_proj = Linear(prefix + "gate_proj", hidden, intermediate_size);
  experts.shared_up_proj = Linear(prefix + "up_proj", hidden, intermediate_size);
  experts.shared_down_proj = Linear(prefix + "down_proj", intermediate_size, hidden);
}

ExpertsSpec ReadSigmoidExperts(ConfigReader& config, int64_t hidden_size) {
  const int64_t size = config.Size("moe_intermediate_size");
  ExpertsSpec experts = ReadExperts(config, hidden_size, size, "mlp.gate");
  RouterSpec& router = experts.router;
  router.score = RouterScore::kSigmoid;
  router.float32_logits = true;
  config.Require("moe_router_dtype", "float32");
  router.choice_bias = "mlp.gate.e_score_correction_bias";
  router.normalize = config.Bool("norm_topk_prob", true);
  router.smallest_weight_sum = 1e-20;  // DeepSeek adds this much
  router.scale = config.OptionalPositive("routed_scaling_factor").value_or(1.0);
  router.num_expert_sets = config.OptionalSize("n_group").value_or(1);
  const std::optional<int64_t> top_sets = config.OptionalSize("topk_group");
  if (router.num_expert_sets > 1 && !top_sets)
    config.Fail("topk_group", "is missing: n_group also needs this integer");
  router.top_expert_sets = top_sets.value_or(1);
  const int64_t sets = router.num_expert_sets, of_set = experts.num_experts / sets;
  if (experts.num_experts % sets != 0 || (sets > 1 && of_set < 2)) {
    config.Fail("n_group", fmt::format("must divide the {} experts into groups of at least two",
                                       experts.num_experts));
  }
  if (router.top_expert_sets > sets || router.top_expert_sets * of_set < router.top_k) {
    config.Fail("topk_group",
                fmt::format("of {} groups must contain at least num_experts_per_tok = {} experts",
                            sets, router.top_k));
  }
  config.Require("scoring_func", "sigmoid");
  config.Require("topk_method", "noaux_tc");
  config.Require("moe_layer_freq", 1);
  NameSharedExpert("mlp.shared_experts.",
                   config.OptionalCount("n_shared_experts").value_or(0) * size, experts);
  return experts;
}

std::vector<bool> ReadDeepSeekSparseLayers(ConfigReader& config, int64_t default_dense) {
  const int64_t num_layers = ReadNumLayers(config);
  const auto first = config.OptionalCount("first_k_dense_replace");
  std::vector<bool> sparse;
  for (int64_t i = 0; i < num_layers; ++i) sparse.push_back(i >= first.value_or(default_dense));
  const Json* types = config.Find("mlp_layer_types");  // takes priority over first_k_dense_replace
  if (types == nullptr) return sparse;
  if (!types->is_array() || types->size() != sparse.size()) {
    config.Fail("mlp_layer_types",
                fmt::format("must be a list of num_hidden_layers = {} names", num_layers));
  }
  for (size_t i = 0; i < sparse.size(); ++i) {
    const Json& type = (*types)[i];
    if (type != "dense" && type != "sparse")
      config.Fail("mlp_layer_types", "is not implemented. Supported: dense, sparse");
    sparse[i] = type == "sparse";
  }
  return sparse;
}

int64_t FirstSparse(const std::vector<bool>& sparse) {
  const auto first = std::ranges::find(sparse, true);
  return first == sparse.end() ? 0 : first - sparse.begin();
}

void PutExperts(const ConfigReader& config, const ExpertsSpec& experts,
                const std::vector<bool>& sparse, ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) {
    if (!sparse.empty() && !sparse[static_cast<size_t>(layer.layer_id)]) continue;
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    ExpertsSpec own = experts;
    for (std::string* name :
         {&own.router.logits.weight, &own.router.logits.bias, &own.router.choice_bias,
          &own.router.input_scale, &own.router.per_expert_scale, &own.gate_up, &own.up, &own.down,
          &own.gate_up_bias, &own.down_bias, &own.prefix, &own.shared_gate_proj.weight,
          &own.shared_gate_proj.bias, &own.shared_up_proj.weight, &own.shared_up_proj.bias,
          &own.shared_down_proj.weight, &own.shared_down_proj.bias, &own.shared_gate.weight}) {
      if (!name->empty()) *name = prefix + *name;
    }
    layer.mlp = {};
    layer.experts = std::move(own);
  }
}

void PutNamedExperts(const ConfigReader& config, const ExpertNames& names,
                     const std::vector<bool>& sparse, ExpertsSpec experts, ModelSpec& spec) {
  NameExperts(config, FirstSparse(sparse), names, experts);
  PutExperts(config, experts, sparse, spec);
}

void SkipPredictionLayers(ConfigReader& config, ModelSpec& spec) {
  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  constexpr const char* kCount = "num_nextn_predict_layers";
  constexpr int64_t kMost = 64;  // bounds the list of skipped prefixes; releases have a few
  int64_t count = config.OptionalCount(kCount).value_or(0);
  if (count > kMost) config.Fail(kCount, fmt::format("is {}, expected at most {}", count, kMost));
  // Some releases store a multi-token prediction layer without mentioning it in the config. It is
  // recognized by eh_proj, which other layers lack.
  if (count == 0 && config.StoresPrefix(config.LayerPrefix(num_layers) + "eh_proj.")) count = 1;
  for (int64_t i = 0; i < count; ++i)
    spec.skipped_prefixes.push_back(config.LayerPrefix(num_layers + i));
}

void PutDeepSeekExperts(ConfigReader& config, int64_t default_dense, const ExpertsSpec& experts,
                        ModelSpec& spec) {
  PutNamedExperts(config, {}, ReadDeepSeekSparseLayers(config, default_dense), experts, spec);
  SkipPredictionLayers(config, spec);
}

}  // namespace oscar
