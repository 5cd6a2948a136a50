// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense matrix products with our private BLAS, which picks kernels for the machine that it runs on.
// Eigen's kernels are compiled for the oldest supported processor. With them, products took a third
// of the time of a search, which fits hundreds of rotations per layer. Results may differ in the
// last bits between two machines, as for eigenvectors. One machine gives the same bits with any
// number of threads.
#pragma once

#include "linalg/matrix.h"

namespace oscar {

Matrix Product(MatrixRef a, MatrixRef b);            // a b
Matrix TransposedProduct(MatrixRef a, MatrixRef b);  // a^T b

}  // namespace oscar
