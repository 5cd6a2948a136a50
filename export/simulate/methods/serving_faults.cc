// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/serving_faults.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "calib/cache/side_tensors.h"  // MatricesOf
#include "export/simulate/chosen_cache.h"
#include "export/simulate/random_rotation.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/runtime_choice.h"
#include "export/simulate/stored_rotations.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The correct arm in one layer, from which a fault is made.
struct Right {
  const CacheMethod& method;
  const ArmOptions& options;
  const MethodContext& context;
  size_t layer_index;
};

// Returns rotations, pair scales and codes of the correct arm in this layer.
RotatedSides SidesOf(const Right& right) {
  const auto runtime = std::ranges::find(Runtimes(), right.method.name, &RuntimeSpec::method);
  const bool is_runtime = runtime != Runtimes().end();
  if (is_runtime && runtime->chosen) return LoadChoice(*runtime, right.context, right.layer_index);
  if (right.method.name == "auto") return SidesOfChoice(ChoiceOf(right.context, right.layer_index));
  const bool shared = is_runtime ? !runtime->per_head : right.method.name == "oscar_shared";
  return StoredRotations(right.context, right.layer_index,
                         shared ? RotationGrouping::kShared : RotationGrouping::kOwn,
                         right.options);
}

at::Tensor InverseOf(const RotatedQuantizer& side) {
  return side.inverse.defined() ? side.inverse : side.rotation.transpose(1, 2);
}

// Multiplies rows [tokens, heads, d] by matrices [heads / n or 1, d, d], each for n consecutive
// heads.
at::Tensor Turned(const at::Tensor& rows, const at::Tensor& matrices) {
  const at::Tensor m = matrices.to(rows.device(), rows.scalar_type());
  const at::Tensor grouped = rows.unflatten(1, {m.size(0), -1}).permute({1, 0, 2, 3});
  return at::matmul(grouped.flatten(1, 2), m)
      .view(grouped.sizes())
      .permute({1, 0, 2, 3})
      .flatten(1, 2)
      .contiguous();
}

// Changes the space of the correct cache's rows: writes x T, and undoes T when reading.
LayerCache InSpace(LayerCache right, const CacheSides& t, const CacheSides& inverse) {
  const auto turned = [](const at::Tensor& rows, const at::Tensor& m) {
    return rows.defined() && m.defined() ? Turned(rows, m) : rows;
  };
  LayerCache cache = right;
  cache.store = [=](const CacheSides& rows) {
    const at::ScalarType dtype = ResultType(rows.k);
    const CachedRows read =
        right.store({turned(rows.k.to(dtype), t.k), turned(rows.v.to(dtype), t.v)});
    return CachedRows{{turned(read.quantized.k, inverse.k), turned(read.quantized.v, inverse.v)},
                      {turned(read.exact.k, inverse.k), turned(read.exact.v, inverse.v)}};
  };
  if (right.queries) {
    cache.queries = [=](const at::Tensor& queries) {
      const at::Tensor q = queries.to(ResultType(queries));
      return turned(right.queries(turned(q, inverse.k.transpose(1, 2))), t.k.transpose(1, 2));
    };
  }
  return cache;
}

// Applies `change` to the keys (`keys` is true) and values that are read. Skips layers that are not
// quantized.
LayerCache Misread(LayerCache right,
                   std::function<at::Tensor(const at::Tensor& rows, bool keys)> change,
                   bool windows) {
  LayerCache cache = right;
  cache.store = [=](const CacheSides& rows) {
    CachedRows read = right.store(rows);
    if (at::equal(read.quantized.k, rows.k.to(read.quantized.k.scalar_type()))) return read;
    read.quantized = {change(read.quantized.k, true), change(read.quantized.v, false)};
    if (windows && read.exact.k.defined()) read.exact.k = change(read.exact.k, true);
    return read;
  };
  return cache;
}

LayerCache WrongArtifact(LayerCache cache, const Right& right) {
  const AttentionSpec& spec = right.context.layers()[right.layer_index].attention;
  const auto rotations = [&](int64_t dim, uint64_t side) {
    std::vector<Matrix> of_heads;
    for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
      const uint64_t stream =
          right.layer_index << 20 | static_cast<uint64_t>(head) << 1 | side | uint64_t{1} << 40;
      of_heads.push_back(RandomRotation(dim, right.context.options().seed, stream));
    }
    return RotationTensor(of_heads);
  };
  const CacheSides t{rotations(spec.head_dim, 0), rotations(spec.v_head_dim, 1)};
  return InSpace(std::move(cache), t, {t.k.transpose(1, 2), t.v.transpose(1, 2)});
}

// Makes keys and queries use different bases. Keys keep the cache's basis. Queries are rotated by
// the transpose of `queries` [heads or 1, d, d], or not at all if it is undefined.
LayerCache OtherBasis(LayerCache cache, const RotatedSides& sides, const at::Tensor& queries) {
  at::Tensor turn = sides.k.rotation;
  if (queries.defined()) turn = at::matmul(turn, queries);
  if (sides.pair_scale.defined())
    turn = turn.mul(sides.pair_scale.unsqueeze(2)).div(sides.pair_scale.unsqueeze(1));
  return Misread(
      std::move(cache),
      [turn](const at::Tensor& rows, bool keys) { return keys ? Turned(rows, turn) : rows; },
      /*windows=*/true);
}

LayerCache QueriesNotRotated(LayerCache cache, const Right& right) {
  return OtherBasis(std::move(cache), SidesOf(right), {});
}

LayerCache OtherHead(LayerCache cache, const Right& right) {
  const RotatedSides sides = SidesOf(right);
  return OtherBasis(std::move(cache), sides, InverseOf(sides.k).roll(-1, 0));
}

// Returns rows [tokens, heads, d] as read by a server that assumes a step of 1 between codes.
// Relies on the lowest and the highest code occurring in each quantization group.
at::Tensor WithStepOfOne(const at::Tensor& rows, const RotatedQuantizer& side) {
  const auto like = [&](const at::Tensor& t) { return t.to(rows.device(), rows.scalar_type()); };
  const AffineQuantizer& codes = side.codes;
  const int64_t group = codes.quant_group_size == 0 ? rows.size(2) : codes.quant_group_size;
  const std::vector<double> bits(codes.bits.begin(), codes.bits.end());
  const at::Tensor steps = like(at::tensor(bits)).exp2().sub(1).view({1, -1, 1, 1});
  const at::Tensor mean = side.mean.defined() ? like(side.mean) : at::Tensor();
  const at::Tensor turned = Turned(mean.defined() ? rows.sub(mean) : rows, side.rotation);
  const at::Tensor values = turned.unflatten(2, {-1, group}), lowest = values.amin(-1, true);
  const at::Tensor step = values.amax(-1, true).sub(lowest).div(steps).clamp_min(1e-12);
  const at::Tensor read =
      Turned(values.sub(lowest).div(step).add(lowest).flatten(2, 3), InverseOf(side));
  return mean.defined() ? read.add(mean) : read;
}

LayerCache ScalesIgnored(LayerCache cache, const Right& right) {
  const RotatedSides sides = SidesOf(right);
  if (const at::Tensor& scale = sides.pair_scale; scale.defined()) {
    const CacheSides unfold{at::diag_embed(1 / scale), {}}, fold{at::diag_embed(scale), {}};
    return InSpace(std::move(cache), unfold, fold);
  }
  return Misread(
      std::move(cache),
      [sides](const at::Tensor& rows, bool keys) {
        return WithStepOfOne(rows, keys ? sides.k : sides.v);
      },
      /*windows=*/false);
}

LayerCache WindowsIgnored(LayerCache cache, const Right&) {
  cache.k_exact = cache.v_exact = {};
  return cache;
}

struct Fault {
  std::string_view name, description;
  LayerCache (*make)(LayerCache cache, const Right& right);
};
constexpr Fault kFaults[] = {
    {"wrong_artifact", "another artifact of the same format: random rotations", WrongArtifact},
    {"queries_not_rotated", "keys rotated, queries not", QueriesNotRotated},
    {"other_head", "queries rotated by another head's matrix", OtherHead},
    {"scales_ignored", "codes read with a step of 1, or pair scales left out", ScalesIgnored},
    {"windows_ignored", "first and recent tokens are also quantized", WindowsIgnored},
};

bool IsOfArtifact(const CacheMethod& method) {
  return method.name == "oscar_shared" || method.name == "oscar_per_head" ||
         method.name == "auto" ||
         std::ranges::find(Runtimes(), method.name, &RuntimeSpec::method) != Runtimes().end();
}

}  // namespace

GuestMethods ServingFaults(const CacheMethod& right, const ArmOptions& options,
                           const MethodContext& context) {
  if (!IsOfArtifact(right)) {
    throw UsageError(
        fmt::format("{}: not a cache of an artifact, expected oscar_shared, oscar_per_head, auto, "
                    "or the name of a runtime's cache",
                    right.name));
  }
  GuestMethods methods;
  for (const Fault& fault : kFaults) {
    if (fault.make == OtherHead && SidesOf({right, options, context, 0}).k.rotation.size(0) == 1)
      continue;
    methods.push_back(std::make_shared<const CacheMethod>(
        CacheMethod{.name = fault.name,
                    .description = fault.description,
                    .takes_clip = false,
                    .takes_windows = false,
                    .make =
                        [&right, options, make = fault.make](
                            const MethodContext& run, size_t layer_index, const ArmOptions&) {
                          return make(MakeLayerCache(right, run, layer_index, options),
                                      {right, options, run, layer_index});
                        },
                    .cost = right.cost}));
  }
  return methods;
}

}  // namespace oscar
