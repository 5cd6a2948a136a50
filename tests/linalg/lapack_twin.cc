// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A shared library that exports LAPACK names and calls them itself, as LibTorch does with its MKL.
// Its functions only count calls and compute nothing.
#include "tests/linalg/lapack_twin.h"

namespace {
int calls = 0;
}

extern "C" {
void dsyevd_() { ++calls; }
void dgemm_() { ++calls; }
}

namespace oscar {

int TwinCalls() { return calls; }
void TwinCallsItself() { dgemm_(); }

}  // namespace oscar
