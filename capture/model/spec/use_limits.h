// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The uses that some calibratable models do not support, and why, in one place: doctor reports them
// in advance, and the refusing command reports them then. Trap: "" means that nothing prevents the
// use, so a command that learns to refuse something has to learn it here.
#pragma once

#include <fmt/format.h>

#include <string>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// For oscar-validate --kernels.
inline std::string WhyNotInKernels(const LayerSpec& layer) {
  if (!layer.attention.latent) return {};
  return fmt::format(
      "layer {} has latent attention (MLA), but the kernels store keys and values separately",
      layer.layer_id);
}

// Why no rotation of values can be folded into v_proj and o_proj, or "" if one can: operations
// between the two must not depend on it.
std::string WhyValuesNotFoldable(const AttentionSpec& attention);

// For oscar-export --to folded-checkpoint, and with WhyValuesNotFoldable --to absorbed-checkpoint.
inline std::string WhyNotFoldable(const ModelSpec& spec,
                                  std::string (*why_not)(const AttentionSpec&) = WhyNotFoldable) {
  for (const LayerSpec& layer : spec.layers) {
    if (const std::string why = why_not(layer.attention); !why.empty())
      return fmt::format("layer {}: {}", layer.layer_id, why);
  }
  for (const LayerSpec& layer : spec.uncached) {
    if (layer.attention.shared_kv) {
      return fmt::format("layer {}: layer {} also reads its keys and values",
                         *layer.attention.shared_kv, layer.layer_id);
    }
  }
  return {};
}

}  // namespace oscar
