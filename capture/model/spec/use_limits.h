// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists, in one place, what some models that can be calibrated do not support, and why. `doctor`
// reports this in advance, and commands report it when they refuse. Trap: "" means that nothing
// prevents the use, so every new refusal must be added here.
#pragma once

#include <fmt/format.h>

#include <string>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Explains a refusal by oscar-validate --kernels.
inline std::string WhyNotInKernels(const LayerSpec& layer) {
  if (!layer.attention.latent) return {};
  return fmt::format(
      "layer {} has latent attention (MLA), but the kernels store keys and values separately",
      layer.layer_id);
}

// Returns why no rotation of values can be folded into v_proj and o_proj, or "" if one can. Folding
// needs operations between the two that commute with the rotation.
std::string WhyValuesNotFoldable(const AttentionSpec& attention);

// Returns why folded-checkpoint (or, with WhyValuesNotFoldable, absorbed-checkpoint) is refused, or
// "" if it is not.
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
