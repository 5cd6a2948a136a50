// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/product.h"

#include "linalg/base/check.h"
#include "linalg/lapack_solver.h"

namespace oscar {
namespace {

Matrix ByBlas(bool transpose, MatrixRef a, MatrixRef b) {
  // BLAS needs contiguous columns, so a block of a larger matrix is copied first.
  if (a.outerStride() != a.rows()) return ByBlas(transpose, Matrix(a), b);
  if (b.outerStride() != b.rows()) return ByBlas(transpose, a, Matrix(b));
  const Eigen::Index rows = transpose ? a.cols() : a.rows();
  OSCAR_CHECK_EQ(transpose ? a.rows() : a.cols(), b.rows());
  Matrix c(rows, b.cols());
  if (c.size() == 0 || b.rows() == 0) return Matrix::Zero(rows, b.cols());
  oscar_lapack_set_num_threads(1);
  oscar_lapack_dgemm(transpose, static_cast<int>(rows), static_cast<int>(b.cols()),
                     static_cast<int>(b.rows()), a.data(), b.data(), c.data());
  return c;
}

}  // namespace

Matrix Product(MatrixRef a, MatrixRef b) { return ByBlas(false, a, b); }
Matrix TransposedProduct(MatrixRef a, MatrixRef b) { return ByBlas(true, a, b); }

}  // namespace oscar
