// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/oscar_kv.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/token_blocks.h"

namespace oscar {
namespace {

constexpr double kKeyNormBits = 32;  // per token; the kernels store float32

CachedRows Store(const CacheSides& rows, const OscarKvOptions& options) {
  if (options.bits == 0) return {{ComputeRows(rows.k), ComputeRows(rows.v)}, {}};
  const AffineRule rule = OscarKvRule(options.bits);
  const int64_t group = GroupWithin(rows.v.size(-1), kOscarKvGroup);
  const auto keys = [&](const at::Tensor& blocks) {
    return HadamardRows(OscarKvKeysRoundTrip(HadamardRows(blocks), rule));
  };
  const auto values = [&](const at::Tensor& blocks) {
    return HadamardRows(AffineFamilyRoundTrip(HadamardRows(blocks), rule, group));
  };
  return {{ThroughTokenBlocks(rows.k, 0, kOscarKvResidual, keys),
           ThroughTokenBlocks(rows.v, 0, kOscarKvResidual, values)},
          {}};
}

}  // namespace

AffineRule OscarKvRule(int bits) {
  return {.family = AffineFamily::kFusedZero, .bits = bits, .metadata = StoredFloat::kFloat16};
}

at::Tensor OscarKvKeysRoundTrip(const at::Tensor& blocks, const AffineRule& rule) {
  const at::Tensor squares = blocks.flatten(-2).square();  // [blocks, tokens, heads * dim]
  const at::Tensor sum = RoundedSqrt(TreeSum(squares, -1)).unsqueeze(-1);
  const at::Tensor norms = sum.masked_fill(sum.le(0), 1);  // [blocks, tokens, 1, 1]
  const at::Tensor channels = blocks.div(norms).permute({0, 2, 3, 1}).contiguous();
  return AffineFamilyRoundTrip(channels, rule, kOscarKvGroup).permute({0, 3, 1, 2}).mul(norms);
}

LayerCache OscarKvCache(const OscarKvOptions& options) {
  const ExactTokens exact = ExactUntilBlocksFill(0, kOscarKvResidual, 1);
  return {.store = [options](const CacheSides& rows) { return Store(rows, options); },
          .k_exact = exact,
          .v_exact = exact};
}

CacheCost OscarKvCost(const OscarKvOptions& options, const std::vector<LayerSpec>& layers,
                      int64_t tokens) {
  const auto quantized = static_cast<double>(tokens / kOscarKvResidual * kOscarKvResidual);
  const auto side = [&](int64_t dim, int64_t group, double norm_bits) {
    const double bits = options.bits + kMetadataBits / static_cast<double>(group);
    const double exact = kKeptBits * (static_cast<double>(tokens) - quantized);
    return RowBits{PaperRowBits(tokens, 0, dim, bits),
                   static_cast<double>(dim) * (quantized * bits + exact) +
                       norm_bits * static_cast<double>(tokens)};
  };
  return MeanCost(
      layers, tokens,
      [&](int64_t dim, int64_t num_kv_heads) {
        return side(dim, kOscarKvGroup, kKeyNormBits / static_cast<double>(num_kv_heads));
      },
      [&](int64_t dim, int64_t) { return side(dim, GroupWithin(dim, kOscarKvGroup), 0); });
}

std::vector<CacheMethod> OscarKvMethods() {
  const OscarKvOptions options;
  return {BlockMethod(
      "oscar_kv", "OScaR (not OSCAR): Hadamard, a norm per token, 2 bits in groups of 32",
      [options](const MethodContext&) { return OscarKvCache(options); },
      [options](const std::vector<LayerSpec>& layers, int64_t tokens) {
        return OscarKvCost(options, layers, tokens);
      })};
}

}  // namespace oscar
