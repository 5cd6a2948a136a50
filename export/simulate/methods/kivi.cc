// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kivi.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/token_blocks.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

AffineRule RuleOf(const KiviOptions& options) {
  return {
      .family = AffineFamily::kMinOffset, .bits = options.bits, .metadata = StoredFloat::kFloat16};
}

CachedRows Store(const CacheSides& rows, const KiviOptions& options,
                 const std::function<at::Tensor(const at::Tensor&)>& channels) {
  if (options.bits == 0) return {{ComputeRows(rows.k), ComputeRows(rows.v)}, {}};
  const int64_t group = GroupWithin(rows.v.size(-1), options.quant_group_size);
  const auto keys = [&](const at::Tensor& blocks) {  // [blocks, R, num_kv_heads, dim]
    return channels(blocks.permute({0, 2, 3, 1}).contiguous()).permute({0, 3, 1, 2});
  };
  return {{ThroughTokenBlocks(rows.k, options.sink, options.residual, keys),
           AffineFamilyRoundTrip(ComputeRows(rows.v), RuleOf(options), group)},
          {}};
}

CacheMethod Kivi(std::string_view name, std::string_view description, const KiviOptions& options) {
  return BlockMethod(
      name, description, [options](const MethodContext&) { return KiviCache(options); },
      [options](const std::vector<LayerSpec>& layers, int64_t tokens) {
        return KiviCost(options, layers, tokens);
      });
}

}  // namespace

at::Tensor KiviChannels(const at::Tensor& channels, const KiviOptions& options) {
  return AffineFamilyRoundTrip(channels, RuleOf(options), options.quant_group_size);
}

LayerCache KiviCache(const KiviOptions& options,
                     std::function<at::Tensor(const at::Tensor&)> channels) {
  OSCAR_CHECK_EQ(options.residual % options.quant_group_size, 0);
  if (!channels) channels = [options](const at::Tensor& x) { return KiviChannels(x, options); };
  return {.store = [options, channels = std::move(channels)](
                       const CacheSides& rows) { return Store(rows, options, channels); },
          .k_exact = ExactUntilBlocksFill(options.sink, options.residual, 1),
          .v_exact = ExactInWindows({options.sink, options.residual + 1})};
}

CacheCost KiviCost(const KiviOptions& options, const std::vector<LayerSpec>& layers,
                   int64_t tokens) {
  const int64_t behind = std::max<int64_t>(0, tokens - options.sink);
  // Returns the bits of one KV head: `quantized` tokens in groups of `group` values, others exact.
  const auto bits_of = [&](int64_t dim, int64_t group, int64_t quantized) {
    const double bits = options.bits + kMetadataBits / static_cast<double>(group);
    const int64_t payload = (quantized * dim * options.bits + 7) / 8 * 8;
    const double metadata = kMetadataBits * static_cast<double>(quantized * dim / group);
    const double exact = kKeptBits * static_cast<double>((tokens - quantized) * dim);
    return RowBits{PaperRowBits(tokens, options.sink, dim, bits),
                   static_cast<double>(payload) + metadata + exact};
  };
  return MeanCost(
      layers, tokens,
      [&](int64_t dim, int64_t) {
        return bits_of(dim, options.quant_group_size, behind / options.residual * options.residual);
      },
      [&](int64_t dim, int64_t) {
        return bits_of(dim, GroupWithin(dim, options.quant_group_size),
                       std::max<int64_t>(0, behind - options.residual));
      });
}

std::vector<CacheMethod> KiviMethods() {
  return {Kivi("kivi2", "KIVI, 2 bits, groups of 128", {.bits = 2}),
          Kivi("kivi2_sink", "KIVI, 2 bits, groups of 128, the first 32 tokens exact",
               {.bits = 2, .sink = 32}),
          Kivi("kivi2_g32", "KIVI, 2 bits, groups of 32 (as in its paper)",
               {.bits = 2, .quant_group_size = 32}),
          Kivi("kivi4", "KIVI, 4 bits, groups of 128", {.bits = 4}),
          Kivi("kivi4_g32", "KIVI, 4 bits, groups of 32", {.bits = 4, .quant_group_size = 32})};
}

}  // namespace oscar
