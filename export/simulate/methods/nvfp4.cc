// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's KV caches of 4-bit floats: NVFP4 for keys and values, or 8-bit keys and NVFP4 values.
// Model-Optimizer's kv_cache_quant_algo calls them NVFP4 and FP8_K_NVFP4_V. Tensor scales are 1, as
// in runtimes if a checkpoint has no scales, or are calibrated to the largest magnitude of the
// calibration rows.
#include <ATen/ATen.h>

#include <algorithm>

#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/typed_cache.h"
#include "linalg/float4.h"

namespace oscar {
namespace {

struct Nvfp4Row {
  std::string_view name, description;
  bool float8_keys, calibrated;
};

constexpr Nvfp4Row kNvfp4Table[] = {
    {"nvfp4", "4-bit floats with an E4M3 scale for 16 values, tensor scale 1", false, false},
    {"nvfp4_calibrated", "4-bit floats with an E4M3 scale for 16 values, calibrated tensor scales",
     false, true},
    {"fp8_k_nvfp4_v_calibrated", "E4M3 keys and NVFP4 values, calibrated tensor scales", true,
     true},
};

float LargestMagnitude(const std::vector<at::Tensor>& sequences) {
  float largest = 0;
  for (const at::Tensor& rows : sequences)
    largest = std::max(largest, rows.abs().max().item<float>());
  return largest;
}

CacheMethod Method(const Nvfp4Row& row) {
  const AffineSide float8{.bits = 8, .metadata_bits = 0, .actual_metadata_bits = 0},
      float4{.bits = 4,
             .metadata_bits = 8,
             .actual_metadata_bits = 8,
             .quant_group_size = kNvfp4Values};
  CacheMethod method = TokenMethod(
      row.name, row.description,
      [row](const MethodContext& context, size_t) -> RotatedSides {
        const LayerTypes types{row.float8_keys ? CacheType::kFp8 : CacheType::kNvfp4,
                               CacheType::kNvfp4};
        if (!row.calibrated) return TypedSides(types, {});
        const CalibrationRows& rows = context.rows();
        return TypedSides(types, {LargestMagnitude(rows.k), LargestMagnitude(rows.v)});
      },
      AffineCost(row.float8_keys ? float8 : float4, float4));
  method.needs_rows = row.calibrated;
  return method;
}

}  // namespace

std::vector<CacheMethod> Nvfp4Methods() {
  std::vector<CacheMethod> methods;
  for (const Nvfp4Row& row : kNvfp4Table) methods.push_back(Method(row));
  return methods;
}

}  // namespace oscar
