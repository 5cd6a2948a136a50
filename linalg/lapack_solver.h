// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Our private LAPACK; its bundle exports no other names (see CMakeLists.txt). Trap: these are C
// calls that check nothing; use eigh.h.
#pragma once

extern "C" {

// LAPACK's dsyevd with jobz = V, uplo = U: overwrites the column-major symmetric a [n, n] with its
// eigenvectors and fills eigenvalues [n], ascending. work [1 + 6 n + 2 n^2] and index_work [3 + 5
// n] are scratch. Returns info.
int oscar_lapack_dsyevd(int n, double* a, double* eigenvalues, double* work, int* index_work);

// BLAS's dgemm, column-major: c [rows, columns] = op(a) b, with op(a) [rows, inner] and b [inner,
// columns]; a transposed a is [inner, rows]. Columns have no padding between them.
void oscar_lapack_dgemm(int transpose_a, int rows, int columns, int inner, const double* a,
                        const double* b, double* c);

// Sets the threads of this copy of OpenBLAS for all later calls.
void oscar_lapack_set_num_threads(int num_threads);
}
