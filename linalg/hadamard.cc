// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/hadamard.h"

#include <bit>
#include <cmath>

#include "linalg/base/check.h"

namespace oscar {

int64_t HadamardBlockSize(int64_t dim) {
  OSCAR_CHECK_LT(0, dim);
  return dim & -dim;
}

Matrix BlockHadamard(int64_t dim) {
  const int64_t block_size = HadamardBlockSize(dim);
  const double value = 1 / std::sqrt(static_cast<double>(block_size));
  Matrix h = Matrix::Zero(dim, dim);
  for (int64_t start = 0; start < dim; start += block_size) {
    for (int64_t j = 0; j < block_size; ++j) {
      for (int64_t i = 0; i < block_size; ++i) {
        const bool negative = std::popcount(static_cast<uint64_t>(i & j)) % 2 == 1;
        h(start + i, start + j) = negative ? -value : value;
      }
    }
  }
  return h;
}

std::vector<int64_t> BitReversal(int64_t n) {
  OSCAR_CHECK(n > 0 && std::has_single_bit(static_cast<uint64_t>(n)));
  std::vector<int64_t> reversed(static_cast<size_t>(n), 0);
  // Reverses the bits of i above its lowest bit, then puts the lowest bit on top.
  for (int64_t i = 1; i < n; ++i) {
    reversed[static_cast<size_t>(i)] =
        reversed[static_cast<size_t>(i / 2)] / 2 + (i % 2 == 1 ? n / 2 : 0);
  }
  return reversed;
}

std::vector<int64_t> BitReversalPermutation(int64_t dim) {
  const int64_t block_size = HadamardBlockSize(dim);
  const std::vector<int64_t> reversed = BitReversal(block_size);
  std::vector<int64_t> perm;
  perm.reserve(static_cast<size_t>(dim));
  for (int64_t start = 0; start < dim; start += block_size) {
    for (const int64_t r : reversed) perm.push_back(start + block_size - 1 - r);
  }
  return perm;
}

Matrix BitReversalMatrix(int64_t dim) {
  Matrix p = Matrix::Zero(dim, dim);
  const std::vector<int64_t> perm = BitReversalPermutation(dim);
  for (int64_t j = 0; j < dim; ++j) p(perm[static_cast<size_t>(j)], j) = 1;
  return p;
}

}  // namespace oscar
