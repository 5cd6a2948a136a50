// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/lapack_solver.h"

#include <lapacke.h>

#include <cstdlib>
#include <cstring>

extern "C" {

// Declared here because other BLAS libraries install their own cblas.h over OpenBLAS's.
void openblas_set_num_threads(int num_threads);
void dgemm_(const char* transpose_a, const char* transpose_b, const int* rows, const int* columns,
            const int* inner, const double* alpha, const double* a, const int* lda, const double* b,
            const int* ldb, const double* beta, double* c, const int* ldc);

int oscar_lapack_dsyevd(int n, double* a, double* eigenvalues, double* work, int* index_work) {
  return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, eigenvalues, work,
                             1 + 6 * n + 2 * n * n, index_work, 3 + 5 * n);
}

void oscar_lapack_dgemm(int transpose_a, int rows, int columns, int inner, const double* a,
                        const double* b, double* c) {
  const double one = 1, zero = 0;
  dgemm_(transpose_a ? "T" : "N", "N", &rows, &columns, &inner, &one, a,
         transpose_a ? &inner : &rows, b, &inner, &zero, c, &rows);
}

// OpenBLAS chooses its kernels by processor model. For a model that it does not know, it takes
// kernels from 2004, which are at most half as fast. In that case, this function chooses by the
// processor's features.
char* openblas_get_corename(void);
void gotoblas_dynamic_init(void);
void gotoblas_dynamic_quit(void);

__attribute__((constructor)) static void TakeKernelsOfThisMachine() {
  constexpr const char* kWish = "OPENBLAS_CORETYPE";
  gotoblas_dynamic_init();  // does nothing if it has already run
  if (std::getenv(kWish) != nullptr || std::strcmp(openblas_get_corename(), "Prescott") != 0 ||
      !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  setenv(kWish, wide ? "SkylakeX" : "Haswell", /*overwrite=*/0);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(kWish);
}

void oscar_lapack_set_num_threads(int num_threads) { openblas_set_num_threads(num_threads); }
}
