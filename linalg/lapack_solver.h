// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A private copy of LAPACK and OpenBLAS that exports only the functions below (see CMakeLists.txt).
// Trap: these are C functions that check nothing; use eigh.h and product.h.
#pragma once

extern "C" {

// LAPACK's dsyevd with jobz = V and uplo = U: overwrites the symmetric a [n, n], column-major, with
// its eigenvectors, and fills eigenvalues [n] in ascending order. work [1 + 6 n + 2 n^2] and
// index_work [3 + 5 n] are scratch memory. Returns LAPACK's info.
int oscar_lapack_dsyevd(int n, double* a, double* eigenvalues, double* work, int* index_work);

// BLAS's dgemm, column-major: c [rows, columns] = op(a) b, with op(a) [rows, inner] and b [inner,
// columns]. If a is to be transposed, it is stored as [inner, rows]. There is no padding between
// columns.
void oscar_lapack_dgemm(int transpose_a, int rows, int columns, int inner, const double* a,
                        const double* b, double* c);

// Sets the threads of this copy of OpenBLAS for all later calls.
void oscar_lapack_set_num_threads(int num_threads);
}
