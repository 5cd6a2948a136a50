// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/rotation_caches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "export/simulate/bf16_cache.h"
#include "linalg/rotation.h"

namespace oscar {

RotatedSides AffineSides(const MethodContext& context, at::Tensor k_rotation, at::Tensor v_rotation,
                         const ClipPair& clip, int bits) {
  const int64_t group = context.options().quant_group_size;
  return {{.rotation = std::move(k_rotation), .codes = {{bits}, {clip.k}, group}},
          {.rotation = std::move(v_rotation), .codes = {{bits}, {clip.v}, group}}};
}

LayerCache RotatedCache(const MethodContext& context, const ArmOptions& options,
                        RotatedSides sides) {
  RotatedQuantizer &k = sides.k, &v = sides.v;
  const ExactTokens exact = ArmWindows(context, options);
  LayerCache cache{.store = {}, .k_exact = exact, .v_exact = exact};
  cache.otherwise = LayerCache::StoreOnce([k, bf16 = options.bf16](const at::Tensor& rows) mutable {
    GoTo(rows, k);
    if (!bf16) {
      const at::Tensor stored = RoundTrip(k, rows);
      return CachedRows{.quantized = {stored, stored}};
    }
    const Bf16Rows keys = Bf16KeysThroughCache(k, rows), values = Bf16ValuesThroughCache(k, rows);
    return CachedRows{.quantized = {keys.quantized, values.quantized},
                      .exact = {keys.exact, values.exact}};
  });
  if (options.bf16) {
    cache.queries = [k](const at::Tensor& queries) mutable {
      GoTo(queries, k);
      return Bf16Queries(k, queries);
    };
    cache.store = [k = std::move(k), v = std::move(v)](const CacheSides& rows) mutable {
      GoTo(rows.k, k);
      GoTo(rows.v, v);
      const Bf16Rows keys = Bf16KeysThroughCache(k, rows.k);
      const Bf16Rows values = Bf16ValuesThroughCache(v, rows.v);
      return CachedRows{.quantized = {keys.quantized, values.quantized},
                        .exact = {keys.exact, values.exact}};
    };
  } else {
    cache.store = [k = std::move(k), v = std::move(v)](const CacheSides& rows) mutable {
      GoTo(rows.k, k);
      GoTo(rows.v, v);
      return CachedRows{.quantized = {RoundTrip(k, rows.k), RoundTrip(v, rows.v)}};
    };
  }
  return cache;
}

CacheMethod TokenMethod(
    std::string_view name, std::string_view description,
    std::function<RotatedSides(const MethodContext& context, size_t layer_index)> sides,
    decltype(CacheMethod::cost) cost) {
  return {.name = name,
          .description = description,
          .takes_clip = false,
          .takes_bf16 = true,
          .make =
              [sides = std::move(sides)](const MethodContext& context, size_t layer_index,
                                         const ArmOptions& options) {
                return RotatedCache(context, options, sides(context, layer_index));
              },
          .cost = std::move(cost)};
}

at::Tensor RotationTensor(const std::vector<Matrix>& rotations) {
  const int64_t dim = rotations.at(0).rows();
  at::Tensor tensor = at::empty({static_cast<int64_t>(rotations.size()), dim, dim}, at::kFloat);
  float* out = tensor.mutable_data_ptr<float>();
  for (const Matrix& rotation : rotations) {
    for (int64_t row = 0; row < dim; ++row) {
      for (int64_t column = 0; column < dim; ++column)
        *out++ = static_cast<float>(rotation(row, column));
    }
  }
  return tensor;
}

at::Tensor HadamardTensor(int64_t dim) { return RotationTensor({HadamardRotation(dim).matrix()}); }

const StoredSide& SharedSide(const StoredSide& own, const StoredSide& shared) {
  return shared.num_rotations == 0 && own.num_rotations == 1 ? own : shared;
}

ClipPair ArmClip(const ArmOptions& options, const ClipPair& own) {
  if (!options.clip) return {};
  return options.clip_ratio > 0 ? ClipPair{options.clip_ratio, options.clip_ratio} : own;
}

ClipPair ArtifactClip(const StoredLayer& layer, const ArmOptions& options) {
  return ArmClip(options, {layer.k.clip_ratio, layer.v.clip_ratio});
}

ClipPair GivenClip(const MethodContext& context, const ArmOptions& options) {
  return ArmClip(options, {context.options().k_clip, context.options().v_clip});
}

}  // namespace oscar
