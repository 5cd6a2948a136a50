// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SAW-INT4. Keys are rotated by a block-diagonal Hadamard matrix of order 16 or of the whole head;
// values are not rotated, which is SAW's default. Keys and values have 4 bits (8 in a variant),
// with one scale and zero per token and head. Rows are rounded to bf16 after rotation. The metadata
// buffer is float32, although the paper counts 16 bits.
#include <algorithm>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/hadamard.h"

namespace oscar {
namespace {

struct SawRow {
  std::string_view name, description;
  int64_t order;  // block size; 0: the head
  int bits = 4;
};

constexpr SawRow kSawTable[] = {
    {"saw_int4", "SAW-INT4: Hadamard blocks of 16 on keys, 4 bits", 16},
    {"saw_int4_head", "SAW-INT4: a Hadamard matrix of the head on keys, 4 bits", 0},
    {"saw_int8", "SAW with 8 bits: Hadamard blocks of 16 on keys", 16, 8},
};

// Returns I (x) H_order, with smaller blocks if the order does not divide the head.
at::Tensor BlockRotation(int64_t dim, int64_t order) {
  const int64_t largest = HadamardBlockSize(dim);
  const int64_t block = order == 0 ? largest : std::min(order, largest);
  Matrix rotation = Matrix::Zero(dim, dim);
  const Matrix h = BlockHadamard(block);
  for (int64_t i = 0; i < dim; i += block) rotation.block(i, i, block, block) = h;
  return RotationTensor(std::vector<Matrix>{rotation});
}

RotatedQuantizer Side(const SawRow& row, int64_t dim, bool rotate) {
  RotatedQuantizer side{.codec = [bits = row.bits](const at::Tensor& rows) {
    return AffineFamilyRoundTrip(RoundTo(rows, StoredFloat::kBFloat16), {.bits = bits},
                                 rows.size(-1));
  }};
  if (rotate) side.rotation = BlockRotation(dim, row.order);
  return side;
}

}  // namespace

std::vector<CacheMethod> SawMethods() {
  std::vector<CacheMethod> methods;
  for (const SawRow& row : kSawTable) {
    methods.push_back(TokenMethod(
        row.name, row.description,
        [&row](const MethodContext& context, size_t layer_index) -> RotatedSides {
          const AttentionSpec& spec = context.layers()[layer_index].attention;
          return {Side(row, spec.head_dim, true), Side(row, spec.v_head_dim, false)};
        },
        AffineCost({.bits = static_cast<double>(row.bits), .quant_group_size = kWholeHead})));
  }
  return methods;
}

}  // namespace oscar
