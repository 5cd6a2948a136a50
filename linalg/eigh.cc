// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/eigh.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/lapack_solver.h"
#include "linalg/product.h"

namespace oscar {
namespace {

// The workspace of about 2 n^2 values must fit LAPACK's 32-bit int.
constexpr Eigen::Index kMaxSize = 16384;

// Memory aligned to 64 bytes. Some BLAS kernels handle an unaligned start separately, but the order
// of a sum, and hence its last bit, must not depend on malloc.
struct AlignedDelete {
  void operator()(double* p) const { std::free(p); }
};
using AlignedArray = std::unique_ptr<double[], AlignedDelete>;

AlignedArray AllocateAligned(Eigen::Index size) {
  const size_t bytes = (static_cast<size_t>(size) * sizeof(double) + 63) / 64 * 64;
  auto* p = static_cast<double*>(std::aligned_alloc(64, bytes));
  if (p == nullptr) throw std::bad_alloc();
  return AlignedArray(p);
}

// Overwrites the symmetric `a` [n, n] with its eigenvectors. Returns LAPACK's info.
int SolveInPlace(Matrix& a, Vector& eigenvalues) {
  const Eigen::Index n = a.rows();
  const AlignedArray values = AllocateAligned(a.size());
  const AlignedArray spectrum = AllocateAligned(n);
  const AlignedArray work = AllocateAligned(1 + 6 * n + 2 * n * n);
  std::vector<int> index_work(static_cast<size_t>(3 + 5 * n));
  Eigen::Map<Matrix>(values.get(), n, n) = a;
  // Sets the threads of our own copy of OpenBLAS, which no other library changes.
  oscar_lapack_set_num_threads(1);
  const int info = oscar_lapack_dsyevd(static_cast<int>(n), values.get(), spectrum.get(),
                                       work.get(), index_work.data());
  a = Eigen::Map<const Matrix>(values.get(), n, n);
  eigenvalues = Eigen::Map<const Vector>(spectrum.get(), n);
  return info;
}

double MinRelativeGap(const Vector& eigenvalues) {
  const Eigen::Index n = eigenvalues.size();
  if (n == 1) return 1;
  return (eigenvalues.tail(n - 1) - eigenvalues.head(n - 1)).minCoeff() /
         eigenvalues.cwiseAbs().maxCoeff();
}

}  // namespace

void FixSigns(Matrix& eigenvectors) {
  for (auto column : eigenvectors.colwise()) {
    Eigen::Index largest = 0;
    for (Eigen::Index i = 1; i < column.size(); ++i) {
      if (std::abs(column[i]) > std::abs(column[largest])) largest = i;
    }
    if (column[largest] < 0) column = -column;
  }
}

Eigenbasis SymmetricEigenbasis(MatrixRef a, std::string_view what) {
  const Eigen::Index n = a.rows();
  if (n == 0 || a.cols() != n || n > kMaxSize) {
    throw NumericalError(
        fmt::format("{}: eigenvectors need a square matrix of 1 to {} rows, found [{}, {}]", what,
                    kMaxSize, a.rows(), a.cols()));
  }
  if (!a.allFinite()) {
    throw NumericalError(
        fmt::format("{}: the [{}, {}] matrix contains NaN or Inf; the usual cause is an overflow "
                    "in the model's float16 activations or a damaged checkpoint",
                    what, n, n),
        Remedy::kWiderFloats);
  }
  const Matrix symmetric = 0.5 * a + 0.5 * a.transpose();
  const double norm = symmetric.stableNorm();
  if (norm == 0) {
    throw NumericalError(
        fmt::format("{}: the [{}, {}] matrix is zero, so it has no directions to rotate to; the "
                    "head is dead, or no tokens were recorded",
                    what, n, n));
  }

  Eigenbasis basis;
  basis.eigenvectors = symmetric;
  const int info = SolveInPlace(basis.eigenvectors, basis.eigenvalues);
  if (info != 0) {
    throw NumericalError(fmt::format(
        "{}: dsyevd on the [{}, {}] matrix failed with info = {} ({}); largest element {:g}", what,
        n, n, info, info > 0 ? "did not converge" : "an argument was invalid",
        symmetric.cwiseAbs().maxCoeff()));
  }
  FixSigns(basis.eigenvectors);

  const Matrix error = Product(symmetric, basis.eigenvectors) -
                       Matrix(basis.eigenvectors * basis.eigenvalues.asDiagonal());
  basis.residual = error.stableNorm() / norm;
  const double limit = 1e-12 * std::sqrt(static_cast<double>(n));
  if (!(basis.residual <= limit)) {
    throw NumericalError(
        fmt::format("{}: the eigenvectors of the [{}, {}] matrix leave a residual of {:.3g}, "
                    "expected at most {:.3g}; the LAPACK library on this machine is faulty",
                    what, n, n, basis.residual, limit));
  }
  basis.min_relative_gap = MinRelativeGap(basis.eigenvalues);
  return basis;
}

}  // namespace oscar
