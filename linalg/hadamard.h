// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The data-independent factors of a rotation: H (normalized Sylvester Hadamard) and P_br (bit
// reversal). If the dimension is not a power of two, both act on blocks of HadamardBlockSize(dim)
// neighbouring coordinates and mix nothing across blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "linalg/matrix.h"

namespace oscar {

// The largest power of two dividing dim: 128 -> 128, 96 -> 32, 45 -> 1 (then H = P = I). dim > 0.
int64_t HadamardBlockSize(int64_t dim);

// I (x) H_b, with b = HadamardBlockSize(dim) and (H_b)_ij = (-1)^popcount(i AND j) / sqrt(b). The
// result is [dim, dim], symmetric and its own inverse.
Matrix BlockHadamard(int64_t dim);

// br(i): i with its low log2(n) bits reversed. [n]; n is a power of two.
std::vector<int64_t> BitReversal(int64_t n);

// Returns perm [dim] with (M P_br)_{:,j} = M_{:,perm[j]}. Eigenvalues are ascending here, so
// upstream's perm[br(i)] = argsort_descending(eigenvalues)[i] becomes perm[j] = b - 1 - br(j)
// within each block of b columns, whatever the data.
std::vector<int64_t> BitReversalPermutation(int64_t dim);

// BitReversalPermutation as a matrix: P_{perm[j], j} = 1. [dim, dim]
Matrix BitReversalMatrix(int64_t dim);

}  // namespace oscar
