// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes how one side (keys or values) of a cache is stored: its rows are rotated and then
// quantized. The fit, the choice, the artifact, simulators and exporters all share this one record.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "linalg/affine_codec.h"  // ScaleFit

namespace oscar {

// A row x is stored as the quantized (x * pair_scale - mean) * rotation. For keys, a query q
// becomes (q / pair_scale) * query_rotation. Tokens are row vectors; matrices are row-major.
struct CacheSide {
  int64_t num_rotations = 0, dim = 0;  // num_rotations: num_kv_heads, or 1 for all
  std::vector<double> rotation;        // [num_rotations, dim, dim]
  std::vector<double> query_rotation;  // same shape; empty: `rotation`, which is orthogonal
  std::vector<double> pair_scale;      // [num_kv_heads, dim], for a folded checkpoint; empty: ones
  std::vector<double> mean;            // [num_kv_heads, dim]; empty: none
  // Factors for error feedback when rows are written (linalg/error_feedback.h), [num_kv_heads, dim,
  // dim]; empty: no feedback. They change neither the stored format nor how it is read.
  std::vector<double> feedback;

  bool operator==(const CacheSide&) const = default;
};

// Affine codes with a real zero (linalg/affine_group.h) for transformed rows.
struct AffineQuantizer {
  std::vector<int> bits = {2};     // [1], or [num_kv_heads]; {0}: no quantization
  std::vector<double> clip = {0};  // percentiles, [1] or [num_kv_heads]; <= 0: no clipping
  int64_t quant_group_size = 0;    // values per scale; 0: the head dimension
  bool clip_groups = false;        // clip each group (as OptR does) instead of the whole row
  ScaleFit scales = ScaleFit::kRange;
  MetadataType metadata = MetadataType::kFloat32;
};

// Attention averages many value rows, so random errors cancel and only bias matters. A logit
// depends on a single key, so keys take the fit with the smaller error.
constexpr ScaleFit FittedScales(bool of_keys) {
  return of_keys ? ScaleFit::kUnbiasedRounded : ScaleFit::kUnbiased;
}

// Sets fitted scales as an automatic choice uses them; bf16 or bytes are precise enough for them.
void FitScales(bool of_keys, MetadataType metadata, auto& format) {
  format.scales = FittedScales(of_keys);
  format.metadata = metadata;
}

// Returns the type in which fitted scales are stored; none for range scales.
std::optional<MetadataType> FittedScalesOf(const auto& format) {
  if (format.scales == ScaleFit::kRange) return {};
  return format.metadata;
}

}  // namespace oscar
