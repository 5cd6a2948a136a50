// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of dense matrices by our private BLAS, whose kernels are those of the machine it runs
// on, while Eigen's are of the one that everybody has: a search fits hundreds of rotations a layer,
// and products were a third of its time. Two machines may differ in the last bits, as they do
// in eigenvectors; one machine does not, whatever the number of threads.
#pragma once

#include "linalg/matrix.h"

namespace oscar {

Matrix Product(MatrixRef a, MatrixRef b);            // a b
Matrix TransposedProduct(MatrixRef a, MatrixRef b);  // a^T b

}  // namespace oscar
