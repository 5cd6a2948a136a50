// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// 8-bit floats as vLLM and SGLang store them. The scale is 1, as in runtimes if a checkpoint has no
// scales, or is calibrated: it maps the largest magnitude of the calibration rows (per tensor or
// per head) to the largest float. Larger values saturate.
#include <ATen/ATen.h>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/float8_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {

namespace {

enum class ScaleSource { kOne, kTensor, kHead };

struct Float8Row {
  std::string_view name, description;
  Float8Type type;
  ScaleSource source;
};

constexpr Float8Row kTable[] = {
    {"fp8_e4m3", "8-bit floats with 3 mantissa bits, scale 1", Float8Type::kE4M3,
     ScaleSource::kOne},
    {"fp8_e4m3_calibrated", "8-bit floats with 3 mantissa bits, a calibrated scale per tensor",
     Float8Type::kE4M3, ScaleSource::kTensor},
    {"fp8_e4m3_per_head", "8-bit floats with 3 mantissa bits, a calibrated scale per KV head",
     Float8Type::kE4M3, ScaleSource::kHead},
    {"fp8_e5m2", "8-bit floats with 2 mantissa bits, scale 1", Float8Type::kE5M2,
     ScaleSource::kOne},
    {"fp8_e5m2_per_head", "8-bit floats with 2 mantissa bits, a calibrated scale per KV head",
     Float8Type::kE5M2, ScaleSource::kHead},
};

// Returns [num_kv_heads or 1, 1, 1] float32 for calibration rows [tokens, num_kv_heads, dim].
at::Tensor Scales(const std::vector<at::Tensor>& sequences, const Float8Row& row) {
  at::Tensor largest;
  for (const at::Tensor& rows : sequences) {
    const at::Tensor own = rows.abs().amax({0, 2}).to(at::kCPU, at::kFloat);
    largest = largest.defined() ? at::maximum(largest, own) : own;
  }
  if (row.source == ScaleSource::kTensor) largest = largest.amax(0, true);
  largest = largest.contiguous();
  at::Tensor scales = at::empty_like(largest);
  for (int64_t head = 0; head < largest.numel(); ++head) {
    scales.mutable_data_ptr<float>()[head] =
        Float8Scale(largest.const_data_ptr<float>()[head], row.type);
  }
  return scales.view({-1, 1, 1});
}

LayerCache Make(const Float8Row& row, const MethodContext& context, const ArmOptions& options) {
  const auto side = [&](const std::vector<at::Tensor>* sequences) {
    const at::Tensor scales =
        sequences == nullptr ? at::ones({1, 1, 1}, at::kFloat) : Scales(*sequences, row);
    return RotatedQuantizer{.codec = [scales, type = row.type](const at::Tensor& rows) {
      return Float8RoundTrip(rows, scales.to(rows.options()), type);
    }};
  };
  if (row.source == ScaleSource::kOne)
    return RotatedCache(context, options, {side(nullptr), side(nullptr)});
  const CalibrationRows& rows = context.rows();
  return RotatedCache(context, options, {side(&rows.k), side(&rows.v)});
}

}  // namespace

std::vector<CacheMethod> Float8Methods() {
  std::vector<CacheMethod> methods;
  for (const Float8Row& row : kTable) {
    methods.push_back(
        {.name = row.name,
         .description = row.description,
         .takes_clip = false,
         .needs_rows = row.source != ScaleSource::kOne,
         .make = [&row](const MethodContext& context, size_t,
                        const ArmOptions& options) { return Make(row, context, options); },
         .cost = AffineCost({.bits = 8, .metadata_bits = 0, .actual_metadata_bits = 0})});
  }
  return methods;
}

}  // namespace oscar
