// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares principal angles with closed forms. zoo_forms_test.cc compares whole artifacts.
#include "zoo/show/entry_diff.h"

#include <gtest/gtest.h>

#include <Eigen/Jacobi>
#include <Eigen/QR>
#include <cmath>
#include <numbers>

namespace oscar {
namespace {

// Rotates eigenvectors in known planes. A plane of a leading and a trailing eigenvector gives a
// principal angle; a plane of two leading ones does not change their span.
TEST(DiffSide, FindsTheAnglesOfPlanarRotations) {
  constexpr int64_t d = 8;  // ascending eigenvalues: the last three reach kLeadingShare
  const std::vector<float> spectrum = {0.01F, 0.02F, 0.03F, 0.04F, 0.05F, 1, 2, 3};
  const Matrix u = Eigen::HouseholderQR<Matrix>(Matrix::Random(d, d)).householderQ();
  const auto side = [&](const std::vector<Matrix>& bases, Composition composition) {
    StoredSide stored;
    stored.num_rotations = std::ssize(bases);
    stored.dim = d;
    for (const Matrix& basis : bases) {
      const Matrix r =
          Compose({Eigen::Map<const Eigen::VectorXf>(spectrum.data(), d).cast<double>(), basis},
                  composition)
              .matrix();
      for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < d; ++j) stored.rotation.push_back(r(i, j));
      stored.eigenvalues.insert(stored.eigenvalues.end(), spectrum.begin(), spectrum.end());
    }
    return stored;
  };
  const auto turned = [&](Matrix basis, int i, int j, double degrees) {
    basis.applyOnTheRight(
        i, j,
        Eigen::JacobiRotation<double>(std::cos(degrees * std::numbers::pi / 180),
                                      std::sin(degrees * std::numbers::pi / 180)));
    return basis;
  };
  for (const Composition composition :
       {Composition::kPlain, Composition::kBr, Composition::kBrH128}) {
    const StoredSide a = side({u, u}, composition);
    for (const double degrees : {1e-4, 0.5, 30.0, 60.0, 90.0}) {
      const StoredSide b = side(
          {turned(turned(u, 4, 5, degrees), 3, 6, degrees / 3), turned(u, 6, 7, 25)}, composition);
      const SideDiff diff = DiffSide(0, 'k', a, b, composition, composition);
      EXPECT_EQ(diff.leading, 3);
      EXPECT_NEAR(diff.max_angle, degrees, 1e-9 + 1e-9 * degrees) << degrees;
      EXPECT_NEAR(diff.mean_angle, degrees / 2, 1e-9 + 1e-9 * degrees) << degrees;
      EXPECT_EQ(diff.spectrum, 0);
    }
  }
}

}  // namespace
}  // namespace oscar
