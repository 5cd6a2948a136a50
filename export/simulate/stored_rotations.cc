// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/stored_rotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "export/simulate/rotation_caches.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

struct StoredSides {
  const StoredSide &k, &v;
};

StoredSides SidesOf(const StoredLayer& layer, RotationGrouping grouping) {
  if (grouping == RotationGrouping::kOwn) return {layer.k, layer.v};
  return {SharedSide(layer.k, layer.k_shared), SharedSide(layer.v, layer.v_shared)};
}

bool EverySide(const MethodContext& context,
               const std::function<bool(const LayerSpec& layer, char side)>& holds) {
  return std::ranges::all_of(context.layers(), [&](const LayerSpec& layer) {
    return holds(layer, 'k') && holds(layer, 'v');
  });
}

bool Complete(const StoredSides& sides) {
  return sides.k.num_rotations > 0 && sides.v.num_rotations > 0;
}

}  // namespace

RotatedSides StoredRotations(const MethodContext& context, size_t layer_index,
                             RotationGrouping grouping, const ArmOptions& options) {
  const StoredLayer& layer = context.Stored(layer_index);
  const StoredSides sides = SidesOf(layer, grouping);
  if (!Complete(sides)) {
    throw InputError(
        fmt::format("{}: layer {} has no shared rotation; measure methods that use the artifact's "
                    "own rotations instead",
                    context.artifact().directory().string(), layer.layer_id));
  }
  return AffineSides(context, RotationTensor(sides.k), RotationTensor(sides.v),
                     ArmClip(options, {sides.k.clip_ratio, sides.v.clip_ratio}));
}

std::function<bool(const MethodContext&)> HasStoredRotations(RotationGrouping grouping) {
  return [grouping](const MethodContext& context) {
    return EverySide(context, [&](const LayerSpec& layer, char side) {
      const Artifact& artifact = context.artifact();
      const int64_t own = artifact.NumRotations(layer.layer_id, side, false);
      if (grouping == RotationGrouping::kOwn) return own > 0;
      return own == 1 || artifact.NumRotations(layer.layer_id, side, true) == 1;
    });
  };
}

bool HasPerHeadRotations(const MethodContext& context) {
  return EverySide(context, [&](const LayerSpec& layer, char side) {
    return context.artifact().NumRotations(layer.layer_id, side, false) ==
           layer.attention.num_kv_heads;
  });
}

}  // namespace oscar
