// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OSCAR with one change: other bits of keys and values, the bisected clip threshold of decode
// kernels, or scales and zeros in bf16 as the paper counts them. All use the artifact's own
// rotations. Clip ratios are those chosen for 2 bits, although more bits need less clipping.
#include <utility>

#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/runtime_rows.h"
#include "export/simulate/stored_rotations.h"

namespace oscar {
namespace {

struct OscarRow {
  std::string_view name, description;
  int k_bits = 2, v_bits = 2;
  bool bisects = false;
  MetadataType metadata = MetadataType::kFloat32;
};

constexpr OscarRow kOscarTable[] = {
    {"oscar_k3v2", "OSCAR, keys 3 bits, values 2", 3, 2},
    {"oscar_k3v3", "OSCAR, 3 bits", 3, 3},
    {"oscar_k4v2", "OSCAR, keys 4 bits, values 2", 4, 2},
    {"oscar_k4v4", "OSCAR, 4 bits", 4, 4},
    {"oscar_bisect", "OSCAR, clip thresholds by bisection, 2 bits", 2, 2, true},
    {"oscar_bf16_metadata", "OSCAR, scales and zeros in bf16, 2 bits", 2, 2, false,
     MetadataType::kBFloat16},
};

void SetQuantizer(RotatedQuantizer& side, const OscarRow& variant, int bits) {
  side.codes.bits = {bits};
  if (variant.bisects) {
    const double ratio = std::exchange(side.codes.clip, {0}).at(0);  // the codec clips
    side.codec = [ratio, group = side.codes.quant_group_size](const at::Tensor& rows) {
      return WriteAndRead({.clip = ClipVariant::kBisect}, rows, ratio,
                          group == 0 ? rows.size(-1) : group);
    };
  }
  side.codes.metadata = variant.metadata;
}

AffineSide CostOf(const OscarRow& variant, int bits) {
  return {.bits = static_cast<double>(bits),
          .actual_metadata_bits = 16.0 * static_cast<double>(MetadataTypeBytes(variant.metadata))};
}

}  // namespace

std::vector<CacheMethod> OscarVariants() {
  std::vector<CacheMethod> methods;
  for (const OscarRow& variant : kOscarTable) {
    methods.push_back(
        {.name = variant.name,
         .description = variant.description,
         .takes_bf16 = true,
         .as_published = {.clip = true, .windows = true},
         .clip_ratios = kArtifactClipRatios,
         .make =
             [&variant](const MethodContext& context, size_t layer_index,
                        const ArmOptions& options) {
               RotatedSides sides =
                   StoredRotations(context, layer_index, RotationGrouping::kOwn, options);
               SetQuantizer(sides.k, variant, variant.k_bits);
               SetQuantizer(sides.v, variant, variant.v_bits);
               return RotatedCache(context, options, std::move(sides));
             },
         .cost = AffineCost(CostOf(variant, variant.k_bits), CostOf(variant, variant.v_bits)),
         .available = HasStoredRotations(RotationGrouping::kOwn)});
  }
  return methods;
}

}  // namespace oscar
