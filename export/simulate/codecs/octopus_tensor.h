// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OCTOPUS's codec of randomly rotated rows (arXiv 2605.21226, section 3). The norm is stored in
// float32, the direction in triplets t. A triplet is a norm of b - 1 bits and a direction, which
// the octahedral map folds onto a square with two coordinates of b + 1 bits:
//
//   p = t / |t|_1;  (x, y) = (p_1, p_2) where p_3 >= 0,
//                   else (sign(p_1) (1 - |p_2|), sign(p_2) (1 - |p_1|))
//
// Levels are Lloyd-Max for directions of the sphere: |t|^2 ~ Beta(3/2, (dim - 3) / 2), and x and y
// of a uniform direction. Among the 3 x 3 codes around the nearest one, the code is chosen whose
// direction n has the largest t n. The norm is the level nearest to t n. If three does not divide
// the dimension, zeros are appended.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace oscar {

struct OctopusTable {
  std::vector<double> coordinates;  // [2^(b + 1)] ascending, in [-1, 1]
  std::vector<double> norms;        // [2^(b - 1)] ascending, for triplets of a unit vector
};

// Requires dim > 5 and bits > 0.
OctopusTable OctopusLevels(int bits, int64_t dim);

// Returns rows [..., dim] as read back: float32 or float64. They must already be rotated. `search`:
// tries all nine codes instead of taking the nearest.
at::Tensor OctopusRoundTrip(const at::Tensor& rows, const OctopusTable& table, bool search = true);

}  // namespace oscar
