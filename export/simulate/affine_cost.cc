// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See affine_cost.h.
#include "export/simulate/affine_cost.h"

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

std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t)> AffineCost(
    const AffineSide& k, const AffineSide& v) {
  return [k, v](const MethodContext& context, const ArmOptions& options, int64_t tokens) {
    CacheCost sum;
    double elements = 0;
    for (const LayerSpec& layer : context.layers()) {
      const AttentionSpec& spec = layer.attention;
      const auto add = [&](const AffineSide& side, int64_t dim) {
        const CacheLayout layout = LayoutOf(context, options, side, dim);
        const auto row = static_cast<double>(spec.num_kv_heads * dim);
        sum.paper += row * PaperBitsPerElement(layout, tokens);
        sum.actual += row * ActualBitsPerElement(layout, tokens);
        elements += row;
      };
      add(k, spec.head_dim);
      add(v, spec.v_head_dim);
    }
    return CacheCost{sum.paper / elements, sum.actual / elements};
  };
}

CacheCost UnquantizedCost(const MethodContext&, const ArmOptions&, int64_t) {
  return {kKeptBits, kKeptBits};
}

}  // namespace oscar
