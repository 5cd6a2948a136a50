// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVTC (arXiv 2511.01815). Keys before rope, and values, are stored as principal components over
// all heads of a layer. Dynamic programming allocates bits to components, none to many of them
// (kvtc_fit.h). The first 4 and the last 128 tokens stay exact, and 16 tokens are coded at once.
// The paper computes components over all layers, which a cache per layer cannot do; its table B.10
// has results for both. The paper also compresses by DEFLATE (1.2 times smaller); bits here are
// before DEFLATE.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/kvtc_fit.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rope_rows.h"
#include "export/simulate/token_blocks.h"

namespace oscar {
namespace {

struct KvtcRow {
  std::string_view name, description;
  double ratio;
};

constexpr KvtcRow kKvtcTable[] = {
    {"kvtc_8x", "KVTC, components of a layer in 2 bits, without the final DEFLATE", 8},
    {"kvtc_16x", "KVTC, components of a layer in 1 bit, without the final DEFLATE", 16},
};

constexpr CacheWindows kKvtcWindows = {4, 128};
constexpr int64_t kKvtcBlock = 16;  // tokens coded at once

LayerCache KvtcCache(const KvtcRow& row, const MethodContext& context, size_t layer_index) {
  const LayerSpec& layer = context.layers()[layer_index];
  const RopeSpec& rope = layer.attention.rope;
  const KvtcOptions options = {.ratio = row.ratio, .sink = kKvtcWindows.sink};
  std::vector<at::Tensor> k_rows, v_rows;
  for (const at::Tensor& rows : context.rows().k)
    k_rows.push_back(UndoRope(rows.to(at::kFloat), rope).flatten(1));
  for (const at::Tensor& rows : context.rows().v) v_rows.push_back(rows.flatten(1));
  const auto what = [&](const char* side) {
    return fmt::format("layer {}, KVTC's {}", layer.layer_id, side);
  };
  const auto store = [rope, keys = FitKvtc(k_rows, options, what("keys")),
                      values = FitKvtc(v_rows, options, what("values"))](const CacheSides& rows) {
    const at::Tensor k = UndoRope(ComputeRows(rows.k), rope), v = ComputeRows(rows.v);
    return CachedRows{
        .quantized = {ApplyRope(KvtcRoundTrip(k.flatten(1), keys).view(k.sizes()), rope),
                      KvtcRoundTrip(v.flatten(1), values).view(v.sizes())}};
  };
  const ExactTokens exact =
      ExactUntilBlocksFill(kKvtcWindows.sink, kKvtcBlock, kKvtcWindows.recent);
  return {.store = store, .k_exact = exact, .v_exact = exact};
}

// Counts all bits that a token may take. Group sizes may leave some of them unused.
CacheCost KvtcCost(const KvtcRow& row, const std::vector<LayerSpec>& layers, int64_t tokens) {
  const int64_t quantized = std::max<int64_t>(0, tokens - kKvtcWindows.sink - kKvtcWindows.recent);
  const auto bits = [&](int64_t coded) {
    return static_cast<double>(coded) * kKeptBits / row.ratio +
           kKeptBits * static_cast<double>(tokens - coded);
  };
  const auto side = [&](int64_t dim, int64_t) {
    return RowBits{static_cast<double>(dim) * bits(quantized),
                   static_cast<double>(dim) * bits(quantized / kKvtcBlock * kKvtcBlock)};
  };
  return MeanCost(layers, tokens, side, side);
}

}  // namespace

std::vector<CacheMethod> KvtcMethods() {
  std::vector<CacheMethod> methods;
  for (const KvtcRow& row : kKvtcTable) {
    methods.push_back(
        {.name = row.name,
         .description = row.description,
         .takes_clip = false,
         .takes_windows = false,
         .needs_rows = true,
         .make = [&row](const MethodContext& context, size_t layer_index,
                        const ArmOptions&) { return KvtcCache(row, context, layer_index); },
         .cost = [&row](const MethodContext& context, const ArmOptions&,
                        int64_t tokens) { return KvtcCost(row, context.layers(), tokens); }});
  }
  return methods;
}

}  // namespace oscar
