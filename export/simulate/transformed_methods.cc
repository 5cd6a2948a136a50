// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See transformed_methods.h.
#include "export/simulate/transformed_methods.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
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

// Of all heads, as the cache takes them.
struct Sides {
  std::vector<Matrix> x, inverse;
  std::vector<Vector> mean;

  void Add(KeyTransform transform) {
    x.push_back(std::move(transform.x));
    inverse.push_back(std::move(transform.inverse));
  }
  RotatedQuantizer Quantizer(int bits, double clip, int64_t group) const {
    RotatedQuantizer quantizer{RotationTensor(x), bits, clip, group};
    quantizer.inverse = RotationTensor(inverse);
    if (!mean.empty()) quantizer.mean = VectorTensor(mean);
    return quantizer;
  }
};

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
  KeyTransformOptions key_options = method.keys;
  key_options.pairs.rotary_dim = layer.attention.rope.rotary_dim;
  key_options.composition = ArtifactComposition(context.artifact());
  Sides k, v;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    KeyFit fit = FitKeyTransform(moments, head, key_options);
    k.Add(std::move(fit.transform));
    if (fit.mean.size() > 0) k.mean.push_back(std::move(fit.mean));
    v.Add(ValueTransform(method, context, layer_index, moments, head));
  }
  const int64_t group = context.options().quant_group_size;
  return RotatedCache(context, options,
                      k.Quantizer(method.k_bits, options.clip ? method.k_clip : 0, group),
                      v.Quantizer(method.v_bits, options.clip ? method.v_clip : 0, group));
}

CacheMethod MakeMethod(const TransformedMethod& method) {
  return {
      .name = method.name,
      .description = method.description,
      .takes_bf16 = true,
      .as_published = {.clip = true, .windows = true},
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
