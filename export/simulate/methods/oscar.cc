// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OSCAR (arXiv 2605.17757): the artifact's rotations and clip ratios, one rotation per KV head or
// one for all heads of a layer.
#include <fmt/format.h>

#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/stored_rotations.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

LayerCache Stored(const MethodContext& context, const StoredSide& k, const StoredSide& v,
                  const ArmOptions& options) {
  return RotatedCache(context, options,
                      AffineSides(context, RotationTensor(k), RotationTensor(v),
                                  ArmClip(options, {k.clip_ratio, v.clip_ratio})));
}

}  // namespace

CacheMethod OscarSharedMethod() {
  return {.name = "oscar_shared",
          .description = "OSCAR, one rotation for all KV heads of a layer, 2 bits",
          .takes_bf16 = true,
          .as_published = {.clip = true, .windows = true},
          .clip_ratios = kArtifactClipRatios,
          .make =
              [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
                const StoredLayer& layer = context.Stored(layer_index);
                const StoredSide& k = SharedSide(layer.k, layer.k_shared);
                const StoredSide& v = SharedSide(layer.v, layer.v_shared);
                if (k.num_rotations == 0 || v.num_rotations == 0) {
                  throw InputError(fmt::format("{}: layer {} has no shared rotation",
                                               context.artifact().directory().string(),
                                               layer.layer_id));
                }
                return Stored(context, k, v, options);
              },
          .cost = AffineCost({}),
          .available = HasStoredRotations(RotationGrouping::kShared)};
}

CacheMethod OscarPerHeadMethod() {
  return {.name = "oscar_per_head",
          .description = "OSCAR, a rotation for each KV head, 2 bits",
          .takes_bf16 = true,
          .as_published = {.clip = true, .windows = true},
          .clip_ratios = kArtifactClipRatios,
          .make =
              [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
                const StoredLayer& layer = context.Stored(layer_index);
                const int64_t heads = context.layers()[layer_index].attention.num_kv_heads;
                if (layer.k.num_rotations != heads || layer.v.num_rotations != heads) {
                  throw InputError(
                      fmt::format("{}: layer {} has {} rotation(s) for keys, expected one for each "
                                  "of {} KV heads; measure oscar_shared instead",
                                  context.artifact().directory().string(), layer.layer_id,
                                  layer.k.num_rotations, heads));
                }
                return Stored(context, layer.k, layer.v, options);
              },
          .cost = AffineCost({}),
          .available = HasPerHeadRotations};
}

}  // namespace oscar
