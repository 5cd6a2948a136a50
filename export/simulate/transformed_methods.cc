// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/transformed_methods.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "export/simulate/affine_cost.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

at::Tensor VectorTensor(const std::vector<Vector>& rows) {
  at::Tensor tensor = at::empty({std::ssize(rows), rows.at(0).size()}, at::kDouble);
  auto* out = tensor.mutable_data_ptr<double>();
  for (const Vector& row : rows) out = std::copy(row.data(), row.data() + row.size(), out);
  return tensor.to(at::kFloat);
}

// The transforms of all heads, from which a RotatedQuantizer is made.
struct Sides {
  std::vector<Matrix> x, inverse;
  std::vector<Vector> mean;

  void Add(KeyTransform transform) {
    x.push_back(std::move(transform.x));
    inverse.push_back(std::move(transform.inverse));
  }
  RotatedQuantizer Quantizer(int bits, double clip, int64_t group) const {
    RotatedQuantizer quantizer{RotationTensor(x), {{bits}, {clip}, group}};
    quantizer.inverse = RotationTensor(inverse);
    if (!mean.empty()) quantizer.mean = VectorTensor(mean);
    return quantizer;
  }
};

ClipPair ClipOf(const TransformedMethod& method, const StoredLayer& layer,
                const ArmOptions& options) {
  return ArmClip(options, {method.k_clip > 0 ? method.k_clip : layer.k.clip_ratio,
                           method.v_clip > 0 ? method.v_clip : layer.v.clip_ratio});
}

KeyTransform ValueTransform(const TransformedMethod& method, const MethodContext& context,
                            size_t layer_index, const LayerMoments& moments, int64_t head) {
  const Composition composition = ArtifactComposition(context.artifact());
  if (method.value_epsilon) {
    const at::Tensor weight = context.options().output_projection(layer_index).to(at::kDouble);
    const at::Tensor column_major = weight.t().contiguous();
    const Eigen::Map<const Matrix> projection(column_major.const_data_ptr<double>(), weight.size(0),
                                              weight.size(1));
    return FitValueTransform(moments, head, OutputMetric(projection, moments, head),
                             *method.value_epsilon, composition);
  }
  const Matrix target = moments.ValueCovariance(head, ArtifactValueTarget(context.artifact()));
  return ScaledRotation(Vector::Ones(moments.v_head_dim), target, composition,
                        fmt::format("layer {}, value rotation", moments.layer_id));
}

LayerCache MakeCache(const TransformedMethod& method, const MethodContext& context,
                     size_t layer_index, const ArmOptions& options) {
  const LayerSpec& layer = context.layers()[layer_index];
  const LayerMoments moments = ArtifactMoments(context, layer_index);
  KeyRecipe recipe = method.keys;
  recipe.composition = ArtifactComposition(context.artifact());
  const RopeSpec& rope = layer.attention.rope;
  const RopePairs pairs{.rotary_dim = rope.rotary_dim,
                        .interleaved = rope.layout == RopeLayout::kInterleaved};
  Sides k, v;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    KeyFit fit = FitKeyTransform(moments, head, recipe, pairs);
    k.Add(std::move(fit.transform));
    if (fit.mean.size() > 0) k.mean.push_back(std::move(fit.mean));
    v.Add(ValueTransform(method, context, layer_index, moments, head));
  }
  const int64_t group = context.options().quant_group_size;
  const ClipPair clip = ClipOf(method, context.Stored(layer_index), options);
  return RotatedCache(
      context, options,
      {k.Quantizer(method.k_bits, clip.k, group), v.Quantizer(method.v_bits, clip.v, group)});
}

std::string ClipRatiosOf(const TransformedMethod& method) {
  if (method.k_clip == 0) return kArtifactClipRatios;
  return fmt::format("keys {:g}, values {:g}", method.k_clip, method.v_clip);
}

CacheMethod MakeMethod(const TransformedMethod& method) {
  return {
      .name = method.name,
      .description = method.description,
      .takes_bf16 = true,
      .as_published = {.clip = true, .windows = true},
      .clip_ratios = ClipRatiosOf(method),
      .why_no_latents = method.value_epsilon
                            ? "it transforms values together with o_proj, separately from keys"
                            : "",
      .make =
          [method](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
            return MakeCache(method, context, layer_index, options);
          },
      .cost = AffineCost({.bits = static_cast<double>(method.k_bits)},
                         {.bits = static_cast<double>(method.v_bits)}),
      .available =
          [method](const MethodContext& context) {
            return HasFit(context) &&
                   (!method.value_epsilon || context.options().output_projection);
          }};
}

}  // namespace

std::vector<CacheMethod> TransformedMethods(std::span<const TransformedMethod> table) {
  std::vector<CacheMethod> methods;
  for (const TransformedMethod& method : table) methods.push_back(MakeMethod(method));
  return methods;
}

}  // namespace oscar
