// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/rotation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "linalg/base/error.h"
#include "linalg/hadamard.h"
#include "linalg/product.h"
#include "tests/linalg/random_values.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

Eigenbasis Basis(int64_t dim, uint64_t seed = 1) {
  return SymmetricEigenbasis(RandomCovariance(dim, seed), "test");
}

double RotationDistance(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

TEST(Rotation, CompositionsAreTheProductsOfTheirFactors) {
  const int64_t d = 16;
  const Eigenbasis basis = Basis(d);
  const Matrix& u = basis.eigenvectors;
  const Matrix h = BlockHadamard(d);
  const Matrix p = BitReversalMatrix(d);
  const std::pair<const char*, Matrix> expected[] = {
      {"plain", u},          {"pbr", p},       {"br", u * p},          {"br_h128", u * p * h},
      {"r_h", u * h},        {"h_pbr", h * p}, {"h_r_pbr", h * u * p}, {"h_pbr_r", h * p * u},
      {"r_h_pbr", u * h * p}};
  for (const auto& [name, product] : expected) {
    const Rotation rotation = Compose(basis, CompositionFromName(name));
    EXPECT_LE(RotationDistance(rotation.matrix(), product), 1e-14) << name;
  }
  EXPECT_EQ(std::size(expected), AllCompositions().size());
}

TEST(Rotation, NamesRoundTripAndUnknownOnesListAll) {
  for (const Composition composition : AllCompositions()) {
    EXPECT_EQ(CompositionFromName(CompositionName(composition)), composition);
  }
  const std::string message = ErrorOf<UsageError>([&] { CompositionFromName("uhp"); });
  for (const Composition composition : AllCompositions()) {
    EXPECT_TRUE(Says(message, CompositionName(composition)));
  }
}

TEST(Rotation, FlattensWithinBlocksWhereTheDimensionIsNoPowerOfTwo) {
  const int64_t d = 96;
  const Matrix c = RandomCovariance(d, 8);
  const Eigenbasis basis = SymmetricEigenbasis(c, "test");
  const Vector importance = Importance(Compose(basis, Composition::kRHPbr).matrix(), c);
  for (int64_t start = 0; start < d; start += 32) {
    const double flat = basis.eigenvalues.segment(start, 32).mean();
    EXPECT_LE((importance.segment(start, 32).array() / flat - 1).abs().maxCoeff(), 1e-11);
  }
}

TEST(Rotation, ImportanceOfOneCoordinateIsAllOrNothing) {
  Matrix c = Matrix::Zero(4, 4);
  c(2, 2) = 3;
  EXPECT_DOUBLE_EQ(ImportanceMaxOverMean(Matrix::Identity(4, 4), c), 4);
  EXPECT_DOUBLE_EQ(ImportanceMaxOverMean(BlockHadamard(4), c), 1);
  EXPECT_THROW(ImportanceMaxOverMean(BlockHadamard(4), Matrix::Zero(4, 4)), NumericalError);
}

TEST(Rotation, EigenvectorsComeBackOutOfEveryCompositionThatHoldsThem) {
  for (const int64_t d : {16, 24}) {
    const Eigenbasis basis = Basis(d, 3);
    for (const Composition composition : AllCompositions()) {
      const Matrix& r = Compose(basis, composition).matrix();
      if (composition == Composition::kPbr || composition == Composition::kHPbr) {
        EXPECT_THROW(RecoverEigenvectors(r, composition), InputError);
      } else {
        EXPECT_LE(RotationDistance(RecoverEigenvectors(r, composition), basis.eigenvectors), 1e-14)
            << CompositionName(composition) << ", " << d;
      }
    }
  }
  EXPECT_THROW(RecoverEigenvectors(Matrix::Zero(3, 4), Composition::kRH), NumericalError);
  EXPECT_THROW(RecoverEigenvectors(Matrix(0, 0), Composition::kPlain), NumericalError);
  EXPECT_EQ(RecoverEigenvectors(Matrix::Ones(1, 1), Composition::kPlain), Matrix::Ones(1, 1));
}

// Compose copies the first factor and applies a permutation without a product. The result must
// equal the product of all factors to the last bit.
TEST(Rotation, ACompositionIsTheProductOfItsFactors) {
  for (const Eigen::Index d : {64, 96, 128}) {
    const Eigenbasis basis = Basis(d);
    const Matrix one = Matrix::Identity(d, d), h = BlockHadamard(d), p = BitReversalMatrix(d);
    const Matrix u = Product(one, basis.eigenvectors);
    EXPECT_EQ(Compose(basis, Composition::kRHPbr).matrix(), Product(Product(u, h), p));
    EXPECT_EQ(Compose(basis, Composition::kBrH128).matrix(), Product(Product(u, p), h));
    EXPECT_EQ(Compose(basis, Composition::kHRPbr).matrix(), Product(Product(h, u), p));
    EXPECT_EQ(Compose(basis, Composition::kHPbrR).matrix(), Product(Product(h, p), u));
  }
}

TEST(Rotation, OrthogonalityIsMeasured) {
  Matrix r = BlockHadamard(8);
  EXPECT_LE(OrthogonalityResidual(r), 1e-15);
  r(0, 0) += 1e-3;
  // (R + e E_00)^T (R + e E_00) - I = e (E_00 R + R^T E_00) + e^2 E_00
  EXPECT_NEAR(OrthogonalityResidual(r), 2e-3 / std::sqrt(8.0) + 1e-6, 1e-15);

  const Rotation rotation = Compose(Basis(128), Composition::kRHPbr);
  EXPECT_EQ(rotation.orthogonality(), OrthogonalityResidual(rotation.matrix()));
  EXPECT_LE(rotation.orthogonality(), 1e-13);
  EXPECT_EQ(rotation.float32_orthogonality(), Float32OrthogonalityResidual(rotation.matrix()));
  EXPECT_GT(rotation.float32_orthogonality(), 1e-9);
  EXPECT_LE(rotation.float32_orthogonality(), kMaxFloat32Orthogonality);
}

TEST(Rotation, AMatrixThatIsNotOrthogonalIsRefusedByName) {
  Matrix r = BlockHadamard(8);
  r(3, 4) += 1e-11;
  EXPECT_TRUE(Says(ErrorOf<NumericalError>([&] { const Rotation rotation(r, "layer 5, keys"); }),
                   "layer 5, keys"));
  EXPECT_THROW(Rotation(Matrix::Identity(3, 4), "test"), NumericalError);
  EXPECT_THROW(Rotation(Matrix(0, 0), "test"), NumericalError);
  EXPECT_THROW(Rotation(Matrix::Constant(2, 2, NAN), "test"), NumericalError);
  EXPECT_THROW(Rotation(RandomOrthogonal(16, 1).cast<float>().cast<double>(), "test"),
               NumericalError);
}

TEST(Rotation, DataFreeOnes) {
  EXPECT_EQ(HadamardRotation(64).matrix(), BlockHadamard(64));
  EXPECT_EQ(IdentityRotation(7).matrix(), Matrix::Identity(7, 7));
  EXPECT_EQ(IdentityRotation(7).orthogonality(), 0);
}

}  // namespace
}  // namespace oscar
