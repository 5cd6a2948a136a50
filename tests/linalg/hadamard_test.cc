// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/hadamard.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

using Indices = std::vector<int64_t>;

TEST(Hadamard, BlockSizeIsTheLargestPowerOfTwoDividingTheDimension) {
  EXPECT_EQ(HadamardBlockSize(128), 128);
  EXPECT_EQ(HadamardBlockSize(96), 32);
  EXPECT_EQ(HadamardBlockSize(80), 16);
  EXPECT_EQ(HadamardBlockSize(45), 1);
  EXPECT_EQ(HadamardBlockSize(1), 1);
}

TEST(Hadamard, FourByFourAsListed) {
  const Matrix expected{{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}};
  EXPECT_EQ(2 * BlockHadamard(4), expected);
}

TEST(Hadamard, IsSymmetricAndItsOwnInverse) {
  for (const int64_t dim : {1, 2, 8, 24, 45, 64, 96, 128, 256}) {
    const Matrix h = BlockHadamard(dim);
    EXPECT_EQ(h, Matrix(h.transpose())) << dim;
    EXPECT_LE((h * h - Matrix::Identity(dim, dim)).cwiseAbs().maxCoeff(), 1e-14) << dim;
  }
}

TEST(Hadamard, OtherDimensionsUseEqualBlocksOnTheDiagonal) {
  const Matrix h = BlockHadamard(12);
  for (int64_t i = 0; i < 12; ++i) {
    for (int64_t j = 0; j < 12; ++j) {
      const double expected = i / 4 == j / 4 ? BlockHadamard(4)(i % 4, j % 4) : 0;
      EXPECT_EQ(h(i, j), expected) << i << ", " << j;
    }
  }
  EXPECT_EQ(BlockHadamard(45), Matrix::Identity(45, 45));
}

TEST(BitReversal, AsListed) {
  EXPECT_EQ(BitReversal(1), (Indices{0}));
  EXPECT_EQ(BitReversal(8), (Indices{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(BitReversal, IsItsOwnInverse) {
  const Indices reversed = BitReversal(256);
  for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(reversed[reversed[i]], i);
}

TEST(BitReversal, PermutationsAsListed) {
  EXPECT_EQ(BitReversalPermutation(4), (Indices{3, 1, 2, 0}));
  EXPECT_EQ(BitReversalPermutation(8), (Indices{7, 3, 5, 1, 6, 2, 4, 0}));
  const Indices perm = BitReversalPermutation(128);
  EXPECT_EQ(Indices(perm.begin(), perm.begin() + 8), (Indices{127, 63, 95, 31, 111, 47, 79, 15}));
  EXPECT_EQ(Indices(perm.end() - 4, perm.end()), (Indices{96, 32, 64, 0}));
}

TEST(BitReversal, OtherDimensionsPermuteWithinBlocks) {
  EXPECT_EQ(BitReversalPermutation(12), (Indices{3, 1, 2, 0, 7, 5, 6, 4, 11, 9, 10, 8}));
  EXPECT_EQ(BitReversalPermutation(3), (Indices{0, 1, 2}));
}

TEST(BitReversal, UpstreamDefinitionForAscendingEigenvalues) {
  const int64_t n = 32;
  const Indices reversed = BitReversal(n);
  Indices perm(n);
  // Upstream: perm[br(i)] = argsort_descending(eigenvalues)[i]. Ours are in ascending order.
  for (int64_t i = 0; i < n; ++i) perm[reversed[i]] = n - 1 - i;
  EXPECT_EQ(BitReversalPermutation(n), perm);
}

TEST(BitReversal, MatrixPermutesColumns) {
  for (const int64_t dim : {8, 12}) {
    const Indices perm = BitReversalPermutation(dim);
    const Matrix m = Matrix::NullaryExpr(
        dim, dim, [dim](auto i, auto j) { return static_cast<double>(i * dim + j); });
    const Matrix permuted = m * BitReversalMatrix(dim);
    for (int64_t j = 0; j < dim; ++j) EXPECT_EQ(Vector(permuted.col(j)), Vector(m.col(perm[j])));
  }
}

}  // namespace
}  // namespace oscar
