// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// K-EXAONE: EXAONE 4's attention with norms before it, DeepSeek's experts. Unlike in EXAONE 4, full
// layers never have rope, even if none slides.
#include <fmt/format.h>

#include "capture/model/families/exaone.h"
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadExaoneMoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qk_norm = true;
  options.rope.default_theta = 10000.0;
  options.windows = ReadExaoneWindows(config);
  const bool slides = config.OptionalSize("sliding_window").has_value();
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    if (slides && !layer.attention.window) layer.attention.rope = {RopeKind::kNone};
  }
  config.Default("n_shared_experts", config.OptionalCount("num_shared_experts").value_or(1));
  config.Default("routed_scaling_factor", 2.5);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  if (const Json* listed = config.Find("is_moe_layer"); listed != nullptr) {
    if (*listed != Json(sparse))
      config.Fail("is_moe_layer", "contradicts mlp_layer_types or first_k_dense_replace");
  }
  const std::string first = config.LayerPrefix(FirstSparse(sparse));
  if (!config.Stores(first + experts.router.choice_bias))
    experts.router.choice_bias = "mlp.e_score_correction_bias";
  PutNamedExperts(config, {}, sparse, experts, spec);
  SkipPredictionLayers(config, spec);
  spec.skipped_prefixes.push_back("mtp.");  // predicts further tokens
  return spec;
}

}  // namespace oscar
