// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reproducible random matrices for tests: the result depends only on the arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "linalg/matrix.h"

namespace oscar {

Matrix RandomNormal(int64_t rows, int64_t cols, uint64_t seed);

// Returns X^T X / (2 dim), where the rows of X have standard deviations from 10 down to 0.1 along
// random orthogonal directions, to resemble attention covariances. [dim, dim]
Matrix RandomCovariance(int64_t dim, uint64_t seed);

// Returns a random orthogonal matrix (from the QR factorization of a normal one). [dim, dim]
Matrix RandomOrthogonal(int64_t dim, uint64_t seed);

// Returns row-major [tokens, dim] normal values.
std::vector<double> RandomRows(int64_t tokens, int64_t dim, uint64_t seed, double sigma = 1);

// Returns one such row as floats. [dim]
std::vector<float> RandomRow(int64_t dim, uint64_t seed);

}  // namespace oscar
