// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/affine_cost.h"

#include <utility>

#include "export/evaluate/bits_per_element.h"

namespace oscar {
namespace {

CacheLayout LayoutOf(const MethodContext& context, const ArmOptions& options,
                     const AffineSide& side, int64_t dim) {
  const CacheWindows windows = options.windows ? context.options().windows : CacheWindows{};
  int64_t group = side.quant_group_size;
  if (group == 0) group = context.options().quant_group_size;
  return {.payload_bits = side.bits == 0 ? kKeptBits : side.bits,
          .metadata_bits = side.metadata_bits,
          .actual_metadata_bits = side.actual_metadata_bits,
          .quant_group_size = group <= 0 ? dim : group,
          .sink_tokens = windows.sink,
          .recent_tokens = windows.recent};
}

}  // namespace

CacheCost MeanOverCache(const std::vector<LayerSpec>& layers, int64_t tokens,
                        const std::function<CacheCost(size_t layer_index, bool keys)>& bits) {
  CacheCost sum;
  double elements = 0;
  const auto add = [&](const CacheCost& rows, int64_t values) {
    sum.paper += rows.paper;
    sum.actual += rows.actual;
    elements += static_cast<double>(values * tokens);
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const AttentionSpec& spec = layers[i].attention;
    add(bits(i, true), spec.num_kv_heads * spec.head_dim);
    if (spec.latent) {
      const double kept = kKeptBits * static_cast<double>(spec.latent->rope_dim * tokens);
      add({kept, kept}, spec.latent->rope_dim);
    } else {
      add(bits(i, false), spec.num_kv_heads * spec.v_head_dim);
    }
  }
  return {sum.paper / elements, sum.actual / elements};
}

std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t)> AffineCost(
    const AffineSide& k, const AffineSide& v) {
  return CostByLayer([k, v](const AttentionSpec&, bool keys) { return keys ? k : v; });
}

std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t)> CostByLayer(
    std::function<AffineSide(const AttentionSpec& spec, bool keys)> side) {
  return [side = std::move(side)](const MethodContext& context, const ArmOptions& options,
                                  int64_t tokens) {
    return MeanOverCache(context.layers(), 1, [&](size_t layer_index, bool keys) {
      const AttentionSpec& spec = context.layers()[layer_index].attention;
      const int64_t dim = keys ? spec.head_dim : spec.v_head_dim;
      const CacheLayout layout = LayoutOf(context, options, side(spec, keys), dim);
      const auto row = static_cast<double>(spec.num_kv_heads * dim);
      return CacheCost{row * PaperBitsPerElement(layout, tokens),
                       row * ActualBitsPerElement(layout, tokens)};
    });
  };
}

CacheCost UnquantizedCost(const MethodContext&, const ArmOptions&, int64_t) {
  return {kKeptBits, kKeptBits};
}

}  // namespace oscar
