// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/rotate_kv.h"

#include <ATen/ATen.h>

#include <array>
#include <numeric>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rope_rows.h"
#include "linalg/hadamard.h"

namespace oscar {
namespace {

// Returns H_heads (x) H_dim, which is H_(heads * dim) for powers of two.
at::Tensor HeadsHadamard(int64_t heads, int64_t dim) {
  const auto tensor = [](const Matrix& symmetric) {
    return at::from_blob(const_cast<double*>(symmetric.data()),
                         {symmetric.rows(), symmetric.cols()}, at::kDouble)
        .clone();
  };
  return at::kron(tensor(BlockHadamard(heads)), tensor(BlockHadamard(dim)));
}

// Rotates rows [tokens, channels] in blocks of rotation.size(0) channels.
at::Tensor Rotated(const at::Tensor& channels, const at::Tensor& rotation) {
  return at::matmul(channels.reshape({channels.size(0), -1, rotation.size(0)}),
                    rotation.to(channels.options()))
      .reshape(channels.sizes());
}

at::Tensor Quantized(const at::Tensor& channels, const RotateKvOptions& options) {
  if (options.bits == 0) return channels;
  const AffineRule rule = {.family = AffineFamily::kIntegerZero,
                           .bits = options.bits,
                           .clip_ratio = options.clip_ratio,
                           .divisor = options.divisor};
  return AffineFamilyRoundTrip(channels.contiguous(), rule,
                               std::gcd(channels.size(1), options.quant_group_size));
}

struct RotateKvRow {
  std::string_view name, description;
  int bits;
  float clip_ratio;
  int divisor;
};

constexpr std::array kRotateKvTable = {
    RotateKvRow{"rotatekv2",
                "RotateKV, 2 bits; the first token exact instead of those with massive activations",
                2, 0.8F, 3},
    RotateKvRow{"rotatekv3", "RotateKV, 3 bits with the divisor 8 of its code; first token exact",
                3, 1, 8},
    RotateKvRow{"rotatekv4",
                "RotateKV, 4 bits; the first token exact instead of those with massive activations",
                4, 1, 15},
};

// Groups have a 16-bit scale and zero. RotateKV's code only simulates a cache, so the paper's bits
// are also given as the allocated ones.
CacheCost Cost(const RotateKvOptions& options, const MethodContext& context, int64_t tokens) {
  return MeanOverCache(context.layers(), tokens, [&](size_t layer_index, bool keys) {
    const AttentionSpec& spec = context.layers()[layer_index].attention;
    const int64_t channels = spec.num_kv_heads * (keys ? spec.head_dim : spec.v_head_dim);
    const auto group = static_cast<double>(std::gcd(channels, options.quant_group_size));
    const auto exact = static_cast<double>(std::min(tokens, options.sink));
    const auto all = static_cast<double>(tokens), row = static_cast<double>(channels);
    const double bits = row * ((all - exact) * (options.bits + 32 / group) + 16 * exact);
    return CacheCost{bits, bits};
  });
}

}  // namespace

int64_t HeadsRotated(int64_t num_kv_heads) { return std::gcd(num_kv_heads, int64_t{4}); }

RotateKvLayer FitRotateKv(const AttentionSpec& spec, const CalibrationRows& rows) {
  RotateKvLayer layer;
  layer.k_rotation = HeadsHadamard(HeadsRotated(spec.num_kv_heads), spec.head_dim);
  layer.v_rotation = HeadsHadamard(1, spec.v_head_dim);
  at::Tensor sums = at::zeros({spec.num_kv_heads * spec.head_dim}, at::kDouble);
  for (const at::Tensor& k : rows.k) {
    const at::Tensor keys = UndoRope(k.to(at::kFloat), spec.rope).flatten(1).to(at::kDouble);
    sums.add_(keys.sum(0).cpu());
  }
  // The sum of rotated keys equals the rotated sum of keys.
  layer.permutation = std::get<1>(Rotated(sums.unsqueeze(0), layer.k_rotation)
                                      .squeeze(0)
                                      .sort(/*stable=*/true, /*dim=*/0, /*descending=*/false));
  return layer;
}

LayerCache RotateKvCache(const AttentionSpec& spec, const RotateKvLayer& layer,
                         const RotateKvOptions& options) {
  const at::Tensor inverse = layer.permutation.argsort();
  const auto store = [rope = spec.rope, layer, inverse, options](const CacheSides& rows) {
    const at::ScalarType dtype = ResultType(rows.k);
    const at::Tensor k = UndoRope(rows.k.to(dtype), rope), v = rows.v.to(dtype);
    const auto index = [&](const at::Tensor& channels, const at::Tensor& order) {
      return channels.index_select(1, order.to(channels.device()));
    };
    const at::Tensor keys =
        Quantized(index(Rotated(k.flatten(1), layer.k_rotation), layer.permutation), options);
    const at::Tensor values = Quantized(Rotated(v.flatten(1), layer.v_rotation), options);
    return CachedRows{
        .quantized = {
            ApplyRope(Rotated(index(keys, inverse), layer.k_rotation).view(k.sizes()), rope),
            Rotated(values, layer.v_rotation).view(v.sizes())}};
  };
  const ExactTokens exact = {options.sink, {}};
  return {.store = store, .k_exact = exact, .v_exact = exact};
}

std::vector<CacheMethod> RotateKvMethods() {
  std::vector<CacheMethod> methods;
  for (const RotateKvRow& variant : kRotateKvTable) {
    const RotateKvOptions options = {
        .bits = variant.bits, .clip_ratio = variant.clip_ratio, .divisor = variant.divisor};
    methods.push_back(
        {.name = variant.name,
         .description = variant.description,
         .takes_clip = false,
         .takes_windows = false,
         .needs_rows = true,
         .make =
             [options](const MethodContext& context, size_t layer_index, const ArmOptions&) {
               const AttentionSpec& spec = context.layers()[layer_index].attention;
               return RotateKvCache(spec, FitRotateKv(spec, context.rows()), options);
             },
         .cost = [options](const MethodContext& context, const ArmOptions&,
                           int64_t tokens) { return Cost(options, context, tokens); }});
  }
  return methods;
}

}  // namespace oscar
