// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/lapack_solver.h"

#include <lapacke.h>

extern "C" {

void openblas_set_num_threads(int num_threads);  // of OpenBLAS's cblas.h, which other BLAS shadow

int oscar_lapack_dsyevd(int n, double* a, double* eigenvalues, double* work, int* index_work) {
  return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, eigenvalues, work,
                             1 + 6 * n + 2 * n * n, index_work, 3 + 5 * n);
}

void oscar_lapack_set_num_threads(int num_threads) { openblas_set_num_threads(num_threads); }
}
