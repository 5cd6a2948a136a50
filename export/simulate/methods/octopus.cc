// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OCTOPUS (arXiv 2605.21226) on keys and values, without its one-bit residual: random signs for
// each head, a Hadamard matrix, and rounded triplets of coordinates (codecs/octopus_tensor.h).
#include <Eigen/Core>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/octopus_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/base/splitmix64.h"
#include "linalg/hadamard.h"

namespace oscar {
namespace {

struct OctopusRow {
  std::string_view name, description;
  int bits;
};

constexpr OctopusRow kOctopusTable[] = {
    {"octopus_2", "OCTOPUS, triplets of 7 bits", 2},
    {"octopus_4", "OCTOPUS, triplets of 13 bits", 4},
};

RotatedQuantizer OctopusSide(int bits, int64_t heads, int64_t dim, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<Matrix> rotations;
  for (int64_t head = 0; head < heads; ++head) {
    Vector signs(dim);
    for (double& sign : signs) sign = random.Uniform() < 0.5 ? -1 : 1;
    rotations.push_back(signs.asDiagonal() * BlockHadamard(dim));
  }
  return {.rotation = RotationTensor(rotations),
          .codec = [table = OctopusLevels(bits, dim)](const at::Tensor& rows) {
            return OctopusRoundTrip(rows, table);
          }};
}

// Three values take 2 (b + 1) + (b - 1) bits, and each row has a float32 norm.
auto OctopusCost(int bits) {
  return CostByLayer([bits](const AttentionSpec& spec, bool keys) {
    const int64_t dim = keys ? spec.head_dim : spec.v_head_dim;
    const auto codes = static_cast<double>((dim + 2) / 3 * (3 * bits + 1));
    return AffineSide{.bits = codes / static_cast<double>(dim),
                      .metadata_bits = 32,
                      .actual_metadata_bits = 32,
                      .quant_group_size = kWholeHead};
  });
}

}  // namespace

std::vector<CacheMethod> OctopusMethods() {
  std::vector<CacheMethod> methods;
  for (const OctopusRow& row : kOctopusTable) {
    methods.push_back(TokenMethod(
        row.name, row.description,
        [&row](const MethodContext& context, size_t layer_index) -> RotatedSides {
          const AttentionSpec& spec = context.layers()[layer_index].attention;
          const uint64_t seed = MixBits(context.options().seed + 1) + 2 * layer_index;
          return {OctopusSide(row.bits, spec.num_kv_heads, spec.head_dim, seed),
                  OctopusSide(row.bits, spec.num_kv_heads, spec.v_head_dim, seed + 1)};
        },
        OctopusCost(row.bits)));
  }
  return methods;
}

}  // namespace oscar
