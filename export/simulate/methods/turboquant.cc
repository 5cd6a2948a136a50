// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// TurboQuant (arXiv 2504.19874). Keys and values are rotated randomly. A row is stored as a norm in
// fp16 and a direction, whose coordinates are rounded to the best levels for uniformly random
// directions. A variant adds the signs of projections of the residual, which makes inner products
// unbiased. vLLM's version (pull request 38479) rotates keys by a Hadamard matrix and quantizes
// unrotated values affinely. By default vLLM leaves the first and last two layers unquantized; here
// every layer is quantized, as in OSCAR's comparison.
#include <ATen/ATen.h>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/codecs/float8_tensor.h"
#include "export/simulate/codecs/turboquant_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/random_rotation.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

constexpr double kNormBits = 16;

struct PaperRow {
  std::string_view name, description;
  int bits;
  bool product;  // b - 1 bits, and the signs of the residual's projections
};

constexpr PaperRow kPaper[] = {
    {"turboquant_mse_1", "TurboQuant with the smallest error, 1 bit", 1, false},
    {"turboquant_mse_2", "TurboQuant with the smallest error, 2 bits", 2, false},
    {"turboquant_mse_3", "TurboQuant with the smallest error, 3 bits", 3, false},
    {"turboquant_mse_4", "TurboQuant with the smallest error, 4 bits", 4, false},
    {"turboquant_prod_4", "TurboQuant with unbiased products, 4 bits", 4, true},
};

struct VllmRow {
  std::string_view name, description;
  int k_bits;  // 8: E4M3, not rotated
  int v_bits;
  bool norm_correction;
};

constexpr VllmRow kVllm[] = {
    {"turboquant_k3v3", "vLLM's TurboQuant, 3 bits", 3, 3, false},
    {"turboquant_k8v4", "vLLM's TurboQuant preset k8v4: E4M3 keys, 4-bit values", 8, 4, false},
    {"turboquant_4bit_nc", "vLLM's TurboQuant preset 4bit_nc: 4 bits, norms corrected", 4, 4, true},
    {"turboquant_k3v4_nc", "vLLM's TurboQuant preset k3v4_nc: keys 3 bits, values 4", 3, 4, true},
    {"turboquant_3bit_nc", "vLLM's TurboQuant preset 3bit_nc: 3 bits, norms corrected", 3, 3, true},
};

at::Tensor OneMatrix(const Matrix& matrix) { return RotationTensor(std::vector<Matrix>{matrix}); }

// Returns the quantizer of keys or values. All heads share one rotation and one matrix S.
RotatedQuantizer PaperSide(const PaperRow& row, const MethodContext& context, size_t layer_index,
                           bool values, int64_t dim) {
  const uint64_t stream = (uint64_t{1} << 62) | layer_index << 2 | (values ? 2U : 0U);
  const uint64_t seed = context.options().seed;
  const SphereRule rule{SphereLevels(row.product ? row.bits - 1 : row.bits, dim)};
  RotatedQuantizer side{.rotation = OneMatrix(RandomRotation(dim, seed, stream))};
  if (!row.product) {
    side.codec = [rule](const at::Tensor& rows) { return SphereRoundTrip(rows, rule); };
    return side;
  }
  const at::Tensor s = OneMatrix(RandomGaussian(dim, seed, stream + 1)).squeeze(0);
  side.codec = [rule, s](const at::Tensor& rows) {
    return ProductRoundTrip(rows, rule, s.to(rows.options()));
  };
  return side;
}

RotatedQuantizer VllmKeys(const VllmRow& row, int64_t dim) {
  if (row.k_bits == 8) {
    return {.codec = [](const at::Tensor& rows) {
      return Float8RoundTrip(rows, at::ones({}, rows.options()), Float8Type::kE4M3);
    }};
  }
  const SphereRule rule{TrapezoidLloydMax(row.k_bits, dim), row.norm_correction};
  return {.rotation = HadamardTensor(dim),
          .codec = [rule](const at::Tensor& rows) { return SphereRoundTrip(rows, rule); }};
}

RotatedQuantizer VllmValues(const VllmRow& row) {
  const AffineRule rule{.family = AffineFamily::kMinOffset,
                        .bits = row.v_bits,
                        .min_scale = 1e-8F,
                        .rounding = CodeRounding::kHalfUp,
                        .metadata = StoredFloat::kFloat16};
  return {.codec = [rule](const at::Tensor& rows) {
    return AffineFamilyRoundTrip(rows, rule, rows.size(-1));
  }};
}

// The published 3.25 bits count two numbers per row for keys and for values, but a key slot holds
// only one.
AffineSide VllmKeyCost(int bits) {
  if (bits == 8) return {.bits = 8, .metadata_bits = 0, .actual_metadata_bits = 0};
  return {.bits = static_cast<double>(bits),
          .metadata_bits = 2 * kNormBits,
          .actual_metadata_bits = kNormBits,
          .quant_group_size = kWholeHead};
}

CacheMethod PaperMethod(const PaperRow& row) {
  const double norms = row.product ? 2 * kNormBits : kNormBits;
  return TokenMethod(
      row.name, row.description,
      [&row](const MethodContext& context, size_t layer_index) -> RotatedSides {
        const AttentionSpec& spec = context.layers()[layer_index].attention;
        return {PaperSide(row, context, layer_index, false, spec.head_dim),
                PaperSide(row, context, layer_index, true, spec.v_head_dim)};
      },
      AffineCost({.bits = static_cast<double>(row.bits),
                  .metadata_bits = norms,
                  .actual_metadata_bits = norms,
                  .quant_group_size = kWholeHead}));
}

CacheMethod VllmMethod(const VllmRow& row) {
  return TokenMethod(
      row.name, row.description,
      [&row](const MethodContext& context, size_t layer_index) -> RotatedSides {
        return {VllmKeys(row, context.layers()[layer_index].attention.head_dim), VllmValues(row)};
      },
      AffineCost(VllmKeyCost(row.k_bits), {.bits = static_cast<double>(row.v_bits),
                                           .actual_metadata_bits = 2 * kNormBits,
                                           .quant_group_size = kWholeHead}));
}

}  // namespace

std::vector<CacheMethod> TurboQuantMethods() {
  std::vector<CacheMethod> methods;
  for (const PaperRow& row : kPaper) methods.push_back(PaperMethod(row));
  for (const VllmRow& row : kVllm) methods.push_back(VllmMethod(row));
  return methods;
}

}  // namespace oscar
