// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Granite 3 with experts and a shared expert. The shared expert stores gate and up as one tensor,
// and is part of the sum that the residual multiplier scales.
#include "capture/model/families/experts_config.h"
#include "capture/model/families/granite.h"

namespace oscar {

ModelSpec ReadGraniteMoeShared(ConfigReader& config) {
  ModelSpec spec = ReadGraniteExperts(config);
  const int64_t size = config.OptionalCount("shared_intermediate_size").value_or(0);
  if (size == 0) return spec;
  for (LayerSpec& layer : spec.layers) {
    NameFusedSharedExpert(config.LayerPrefix(layer.layer_id) + "shared_mlp.", size, *layer.experts);
  }
  return spec;
}

}  // namespace oscar
