// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How the rows of one side of a cache are turned before they are quantized: the one record of it
// from the fit over the choice and the artifact to the simulators and the exporters.
#pragma once

#include <cstdint>
#include <vector>

namespace oscar {

// Rows are stored as quantized (x * pair_scale - mean) rotation; of keys, queries
// (q / pair_scale) query_rotation meet them. Tokens are row vectors; matrices are row-major.
struct CacheSide {
  int64_t num_rotations = 0, dim = 0;  // num_kv_heads, or 1 for all
  std::vector<double> rotation;        // [num_rotations, dim, dim]
  std::vector<double> query_rotation;  // the same; empty: `rotation`, which is orthogonal
  std::vector<double> pair_scale;      // [num_kv_heads, dim]; of a folded checkpoint; empty: ones
  std::vector<double> mean;            // [num_kv_heads, dim]; empty: none

  bool operator==(const CacheSide&) const = default;
};

}  // namespace oscar
