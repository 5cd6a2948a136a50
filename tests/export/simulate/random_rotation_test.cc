// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0

#include "export/simulate/random_rotation.h"

#include <gtest/gtest.h>

#include "linalg/rotation.h"

namespace oscar {
namespace {

TEST(RandomRotation, IsOrthogonalAndAFunctionOfSeedAndStream) {
  const Matrix r = RandomRotation(64, 1, 2);
  EXPECT_LT(OrthogonalityResidual(r), 1e-13);
  EXPECT_EQ(r, RandomRotation(64, 1, 2));
  EXPECT_GT((r - RandomRotation(64, 1, 3)).norm(), 1);
  EXPECT_GT((r - RandomRotation(64, 2, 2)).norm(), 1);
}

// Elements of a Haar-distributed rotation have mean 0, variance 1 / n, and fourth moment
// 3 / (n (n + 2)).
TEST(RandomRotation, HasNoPreferredDirection) {
  double sum = 0, square = 0, fourth = 0;
  constexpr int kDim = 64, kDraws = 8;
  for (uint64_t stream = 0; stream < kDraws; ++stream) {
    const Matrix r = RandomRotation(kDim, 7, stream);
    sum += r.sum();
    square += r.squaredNorm();
    fourth += r.array().pow(4).sum();
  }
  constexpr double kElements = kDim * kDim * kDraws;
  EXPECT_NEAR(sum / kElements, 0, 5 / std::sqrt(kElements * kDim));
  EXPECT_NEAR(square / kElements, 1.0 / kDim, 1e-12);
  EXPECT_NEAR(fourth / kElements, 3.0 / (kDim * (kDim + 2.0)), 0.03 * 3 / (kDim * kDim));
}

}  // namespace
}  // namespace oscar
