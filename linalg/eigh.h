// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Eigenvectors of a covariance (LAPACK dsyevd, float64), with a measure of their quality. The
// solver's choice of an eigenvector's sign is arbitrary, and so is its direction near a repeated
// eigenvalue. The sign is fixed here, and close eigenvalues are reported (min_relative_gap). Never
// compare eigenvectors elementwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "linalg/matrix.h"

namespace oscar {

struct Eigenbasis {
  Vector eigenvalues;   // [n], ascending
  Matrix eigenvectors;  // [n, n]; column i belongs to eigenvalue i, and its component of largest
                        // magnitude (the first on ties) is positive
  double residual = 0;  // ||A V - V diag(eigenvalues)||_F / ||A||_F
  // Smallest gap between neighbouring eigenvalues / largest |eigenvalue|; 1 if n = 1.
  double min_relative_gap = 0;
};

// Negates columns as needed to make their component of largest magnitude positive.
void FixSigns(Matrix& eigenvectors);

// Decomposes A = (a + a^T) / 2, a [n, n]. The same input gives the same bytes with any number of
// threads and in any program. May be called from several threads at once. Throws NumericalError,
// naming `what` (for example "layer 3, KV head 1, query covariance"), if a is empty, not square,
// zero (a dead head) or not finite, if the solver does not converge, or if the residual exceeds
// 1e-12 sqrt(n).
Eigenbasis SymmetricEigenbasis(MatrixRef a, std::string_view what);

}  // namespace oscar
