// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OCTOPUS's codec for randomly rotated rows (arXiv 2605.21226, section 3). A row's norm is stored
// in float32. Its direction is cut into triplets t, with zeros appended if three does not divide
// the dimension. A triplet is stored as a norm in b - 1 bits and a direction. The octahedral map
// folds the direction onto a square, where it has two coordinates of b + 1 bits each:
//
//   p = t / |t|_1;  (x, y) = (p_1, p_2) where p_3 >= 0,
//                   else (sign(p_1) (1 - |p_2|), sign(p_2) (1 - |p_1|))
//
// Levels of |t| are Lloyd-Max for rows uniform on the sphere: |t|^2 ~ Beta(3/2, (dim - 3) / 2).
// Levels of x and y are Lloyd-Max for uniform directions of t. Among the 3 x 3 codes around the
// nearest one, the encoder takes the one whose direction n has the largest product <t, n>. The
// stored norm is the level nearest to that product.
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
