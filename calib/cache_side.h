// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How one side of a cache is stored: its rows are turned and then made codes of. This is the only
// record of it, from the fit over the choice and the artifact to simulators and exporters.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "linalg/affine_codec.h"  // ScaleFit

namespace oscar {

// Rows are stored as quantized (x * pair_scale - mean) rotation. For keys, queries are turned to (q
// / pair_scale) query_rotation. Tokens are row vectors; matrices are row-major.
struct CacheSide {
  int64_t num_rotations = 0, dim = 0;  // num_kv_heads, or 1 for all
  std::vector<double> rotation;        // [num_rotations, dim, dim]
  std::vector<double> query_rotation;  // the same; empty: `rotation`, which is orthogonal
  std::vector<double> pair_scale;      // [num_kv_heads, dim]; of a folded checkpoint; empty: ones
  std::vector<double> mean;            // [num_kv_heads, dim]; empty: none
  // Factors of error feedback at the write (linalg/error_feedback.h), [num_kv_heads, dim, dim];
  // empty: rows are written without. Format and reader are the same.
  std::vector<double> feedback;

  bool operator==(const CacheSide&) const = default;
};

// Affine codes with a real zero (linalg/affine_group.h) of turned rows.
struct AffineQuantizer {
  std::vector<int> bits = {2};     // [1], or [num_kv_heads]; {0}: nothing is quantized
  std::vector<double> clip = {0};  // percentiles of a row, [1] or [num_kv_heads]; <= 0: none
  int64_t quant_group_size = 0;    // values per scale; 0: the head
  bool clip_groups = false;        // a percentile of each group, as OptR; else of the row
  ScaleFit scales = ScaleFit::kRange;
  MetadataType metadata = MetadataType::kFloat32;
};

// Attention averages many values, so errors cancel and bias does not; each key is read alone.
constexpr ScaleFit FittedScales(bool of_keys) {
  return of_keys ? ScaleFit::kUnbiasedRounded : ScaleFit::kUnbiased;
}

// Sets the scales of an automatic choice, which need no more precision than bf16 or bytes.
void FitScales(bool of_keys, MetadataType metadata, auto& format) {
  format.scales = FittedScales(of_keys);
  format.metadata = metadata;
}

// Returns the type in which fitted scales are stored; none if the scales are those of the range.
std::optional<MetadataType> FittedScalesOf(const auto& format) {
  if (format.scales == ScaleFit::kRange) return {};
  return format.metadata;
}

}  // namespace oscar
