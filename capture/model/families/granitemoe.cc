// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Granite 3 with experts: Granite's four multipliers, experts in every layer. The softmax is over
// the chosen experts only, and the experts are fused with their own names.
#include "capture/model/families/granite.h"

namespace oscar {

ModelSpec ReadGraniteMoe(ConfigReader& config) { return ReadGraniteExperts(config); }

ModelSpec ReadGraniteExperts(ConfigReader& config) {
  DenseDecoderOptions options;
  options.dense_mlp = false;
  ModelSpec spec = ReadGraniteLayers(config, options);
  // As transformers 5 writes some of its descendants, or as in all releases.
  const std::string block = "block_sparse_moe.";
  const bool written = config.StoresPrefix(config.LayerPrefix(0) + block + "experts.");
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"),
                                    block + (written ? "router" : "router.layer"));
  experts.router.score = RouterScore::kChosenSoftmax;
  experts.fused = true;
  experts.gate_up = block + (written ? "experts.gate_up_proj" : "input_linear.weight");
  experts.down = block + (written ? "experts.down_proj" : "output_linear.weight");
  PutExperts(config, experts, std::vector<bool>(spec.layers.size(), true), spec);
  return spec;
}

FusedMlp NameFusedMlp(const std::string& prefix, int64_t hidden_size, int64_t intermediate_size) {
  const std::string both = prefix + "input_linear";
  const int64_t size = intermediate_size;
  return {Rows(both, hidden_size, 0, size, 2 * size), Rows(both, hidden_size, size, size, 2 * size),
          Linear(prefix + "output_linear", intermediate_size, hidden_size)};
}

void NameFusedSharedExpert(const std::string& prefix, int64_t intermediate_size,
                           ExpertsSpec& experts) {
  const FusedMlp mlp = NameFusedMlp(prefix, experts.hidden_size, intermediate_size);
  experts.shared_size = intermediate_size;
  experts.shared_gate_proj = mlp.gate;
  experts.shared_up_proj = mlp.up;
  experts.shared_down_proj = mlp.down;
}

}  // namespace oscar
