// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Our LAPACK and another library's functions of the same names (LibTorch's MKL) must not answer
// each other's calls. See linalg/CMakeLists.txt.
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
