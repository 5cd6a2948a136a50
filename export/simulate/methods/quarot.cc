// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// QuaRot (arXiv 2404.00456): a Hadamard rotation of every head with two of QuaRot's quantizers, one
// with an integer zero and one with a minimum. Clipping multiplies both ends of the range by 0.95,
// while OSCAR clips at a percentile. In the per-token variant, a group spans all KV heads and its
// range includes 0. The methods `hadamard` and `int4_hadamard` have the same rotation with OSCAR's
// quantizer, as in OSCAR's tables.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

constexpr float kClipRatio = 0.95F;

struct QuarotRow {
  std::string_view name, description;
  AffineRule rule;
  bool all_heads = false;  // one quantization group per token
};

constexpr AffineRule Asymmetric(int bits) {
  return {.family = AffineFamily::kIntegerZero, .bits = bits, .metadata = StoredFloat::kFloat16};
}
constexpr AffineRule WithZero(int bits) {
  AffineRule rule = Asymmetric(bits);
  rule.include_zero = true;
  return rule;
}
// Returns the quantizer of quarot/transformers/kv_cache.py, which stores a minimum instead of a
// zero and limits the range from below.
constexpr AffineRule Kernel(int bits) {
  return {.family = AffineFamily::kMinOffset,
          .bits = bits,
          .min_range = 1e-5F,
          .metadata = StoredFloat::kFloat16};
}

constexpr QuarotRow kQuarotTable[] = {
    {"quarot_int2", "QuaRot: Hadamard and integer zeros per token and head, 2 bits", Asymmetric(2)},
    {"quarot_int4", "QuaRot: Hadamard and integer zeros per token and head, 4 bits", Asymmetric(4)},
    {"quarot_int2_per_token", "QuaRot, one scale for all heads of a token, 2 bits", WithZero(2),
     true},
    {"quarot_int4_kernel", "QuaRot as its INT4 cache kernels store it", Kernel(4)},
};

RotatedQuantizer Side(const QuarotRow& row, int64_t dim, const ArmOptions& options) {
  AffineRule rule = row.rule;
  const double ratio = ArmClip(options, {kClipRatio, kClipRatio}).k;
  if (ratio > 0) rule.clip_ratio = static_cast<float>(ratio);
  RotatedQuantizer side;
  side.rotation = HadamardTensor(dim);
  side.codec = [rule, all_heads = row.all_heads](const at::Tensor& rows) {
    if (!all_heads) return AffineFamilyRoundTrip(rows, rule, rows.size(-1));
    const at::Tensor tokens = rows.permute({1, 0, 2});  // [tokens, num_kv_heads, dim]
    const at::Tensor flat = tokens.flatten(1).contiguous();
    return AffineFamilyRoundTrip(flat, rule, flat.size(-1))
        .view(tokens.sizes())
        .permute({1, 0, 2})
        .contiguous();
  };
  return side;
}

auto Cost(const QuarotRow& row) {
  return CostByLayer([&row](const AttentionSpec& spec, bool) {
    const double bits = 32 / static_cast<double>(row.all_heads ? spec.num_kv_heads : 1);
    return AffineSide{.bits = static_cast<double>(row.rule.bits),
                      .metadata_bits = bits,
                      .actual_metadata_bits = bits,
                      .quant_group_size = kWholeHead};
  });
}

}  // namespace

std::vector<CacheMethod> QuarotMethods() {
  std::vector<CacheMethod> methods;
  for (const QuarotRow& row : kQuarotTable) {
    methods.push_back(
        {.name = row.name,
         .description = row.description,
         .takes_bf16 = true,
         .clip_ratios = fmt::format("{:g} of both ends of a row", kClipRatio),
         .make =
             [&row](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
               const AttentionSpec& spec = context.layers()[layer_index].attention;
               return RotatedCache(
                   context, options,
                   {Side(row, spec.head_dim, options), Side(row, spec.v_head_dim, options)});
             },
         .cost = Cost(row)});
  }
  return methods;
}

}  // namespace oscar
