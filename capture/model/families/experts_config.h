// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what families with a mixture of experts share: counts under their various names, which
// layers have experts, and how experts are stored. A family describes the experts once, with names
// relative to a layer ("mlp.gate.weight"), and PutExperts copies the description to every sparse
// layer. In the same family, some releases store each expert separately and others store all
// experts of a layer in one tensor. The tensor names of the checkpoint show which.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/model/families/dense_decoder.h"
#include "capture/model/spec/config_reader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Reads num_experts, num_local_experts or n_routed_experts; if there are several, they must agree.
int64_t ReadNumExperts(ConfigReader& config);

// Reads the number of experts (ReadNumExperts), top_k (num_experts_per_tok) and the activation.
// `router` names the projection to the router's logits, which has no bias.
ExpertsSpec ReadExperts(ConfigReader& config, int64_t hidden_size, int64_t intermediate_size,
                        const std::string& router);

// Names of stored experts, relative to the layer.
struct ExpertNames {
  std::string separate = "mlp.experts.";
  std::string gate = "gate_proj.weight", up = "up_proj.weight", down = "down_proj.weight";
  std::string fused_gate_up = "mlp.experts.gate_up_proj", fused_down = "mlp.experts.down_proj";
  bool usually_fused = false;  // used without a checkpoint
};
// Uses the fused names if layer `sparse_layer` is stored that way.
void NameExperts(const ConfigReader& config, int64_t sparse_layer, const ExpertNames& names,
                 ExpertsSpec& experts);

// Reads Mixtral's experts, which MiniMax also uses. Their size is intermediate_size, their names
// are under "block_sparse_moe.", and their weights are normalized.
ExpertsSpec ReadBlockSparseExperts(ConfigReader& config, int64_t hidden_size);

// Adds a shared expert with this intermediate size (0: none): prefix + "gate_proj.weight" ...
void NameSharedExpert(const std::string& prefix, int64_t intermediate_size, ExpertsSpec& experts);

// Reads DeepSeek's experts, which GLM and Kimi also use: sigmoid scores, a bias for the choice,
// names under "mlp.". Fields: n_group, topk_group, norm_topk_prob, routed_scaling_factor,
// n_shared_experts.
ExpertsSpec ReadSigmoidExperts(ConfigReader& config, int64_t hidden_size);

// Returns which layers have experts in DeepSeek: those in mlp_layer_types or, without that field,
// all from first_k_dense_replace (or `default_dense`) on.
std::vector<bool> ReadDeepSeekSparseLayers(ConfigReader& config, int64_t default_dense);
int64_t FirstSparse(const std::vector<bool>& sparse);  // 0 if no layer is sparse

// Replaces the MLP of the sparse layers by experts; an empty `sparse` means all layers.
void PutExperts(const ConfigReader& config, const ExpertsSpec& experts,
                const std::vector<bool>& sparse, ModelSpec& spec);

// Calls NameExperts for the first sparse layer and PutExperts for all sparse layers.
void PutNamedExperts(const ConfigReader& config, const ExpertNames& names,
                     const std::vector<bool>& sparse, ExpertsSpec experts, ModelSpec& spec);

// Skips the multi-token prediction layers, which are stored as layers num_hidden_layers and up.
void SkipPredictionLayers(ConfigReader& config, ModelSpec& spec);

// Gives these experts, with the names under which they are stored, to DeepSeek's sparse layers, and
// skips multi-token prediction layers. `default_dense`: number of dense layers if the config has no
// first_k_dense_replace.
void PutDeepSeekExperts(ConfigReader& config, int64_t default_dense, const ExpertsSpec& experts,
                        ModelSpec& spec);

}  // namespace oscar
