// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that our LAPACK does not answer calls of another library that exports the same names (such
// as LibTorch's MKL), nor the other way round. See linalg/CMakeLists.txt.
#include <gtest/gtest.h>

#include "linalg/eigh.h"
#include "tests/linalg/lapack_twin.h"

namespace oscar {
namespace {

TEST(LapackIsolation, EachLibraryCallsItsOwn) {
  TwinCallsItself();
  EXPECT_EQ(TwinCalls(), 1);
  const Eigenbasis basis = SymmetricEigenbasis(Matrix{{2, 1}, {1, 2}}, "test");
  EXPECT_EQ(TwinCalls(), 1);
  EXPECT_NEAR(basis.eigenvalues[1], 3, 1e-15);
}

}  // namespace
}  // namespace oscar
