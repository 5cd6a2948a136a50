// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/eigh.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "linalg/base/error.h"
#include "linalg/lapack_solver.h"
#include "tests/linalg/random_values.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

bool SameBytes(const Eigenbasis& a, const Eigenbasis& b) {
  return std::memcmp(a.eigenvectors.data(), b.eigenvectors.data(),
                     sizeof(double) * static_cast<size_t>(a.eigenvectors.size())) == 0 &&
         std::memcmp(a.eigenvalues.data(), b.eigenvalues.data(),
                     sizeof(double) * static_cast<size_t>(a.eigenvalues.size())) == 0 &&
         a.residual == b.residual;
}

std::string MessageOf(const Matrix& a) {
  return ErrorOf<NumericalError>(
      [&] { SymmetricEigenbasis(a, "layer 3, KV head 1, query covariance"); });
}

TEST(Eigh, TwoByTwoHasItsClosedForm) {
  const Eigenbasis basis = SymmetricEigenbasis(Matrix{{2, 1}, {1, 2}}, "test");
  EXPECT_NEAR(basis.eigenvalues[0], 1, 1e-15);
  EXPECT_NEAR(basis.eigenvalues[1], 3, 1e-15);
  const double s = std::sqrt(0.5);
  EXPECT_LE((basis.eigenvectors - Matrix{{s, s}, {-s, s}}).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_NEAR(basis.min_relative_gap, 2.0 / 3, 1e-15);
}

TEST(Eigh, OneByOne) {
  const Eigenbasis basis = SymmetricEigenbasis(Matrix{{-4}}, "test");
  EXPECT_EQ(basis.eigenvalues[0], -4);
  EXPECT_EQ(basis.eigenvectors(0, 0), 1);
  EXPECT_EQ(basis.min_relative_gap, 1);
}

TEST(Eigh, RecoversAKnownSpectrumInAscendingOrder) {
  for (const int64_t n : {3, 64, 129}) {
    const Vector spectrum = Vector::LinSpaced(n, 0.5, 7);
    const Matrix q = RandomOrthogonal(n, 5);
    const Eigenbasis basis = SymmetricEigenbasis(q * spectrum.asDiagonal() * q.transpose(), "test");
    EXPECT_LE((basis.eigenvalues - spectrum).cwiseAbs().maxCoeff(), 1e-13);
    EXPECT_NEAR(basis.min_relative_gap, 6.5 / static_cast<double>(n - 1) / 7, 1e-12);
  }
}

TEST(Eigh, UsesBothTrianglesOfItsInput) {
  Matrix a = RandomCovariance(8, 1);
  const Eigenbasis symmetric = SymmetricEigenbasis(a, "test");
  a(0, 5) += 0.25;
  a(5, 0) -= 0.25;
  const Eigenbasis skewed = SymmetricEigenbasis(a, "test");
  EXPECT_LE((symmetric.eigenvalues - skewed.eigenvalues).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(Eigh, LargestComponentOfEachVectorIsPositiveTheFirstOnTies) {
  const Eigenbasis basis = SymmetricEigenbasis(RandomCovariance(48, 2), "test");
  for (const auto& column : basis.eigenvectors.colwise()) {
    EXPECT_GT(column.maxCoeff(), -column.minCoeff());
  }
  // The eigenvectors (1, -1, 0, 0) and (0, 0, 1, -1) have entries of equal magnitude. The first of
  // them is positive.
  const Matrix ties{{2, 1, 0, 0}, {1, 2, 0, 0}, {0, 0, 5, 1}, {0, 0, 1, 5}};
  const Eigenbasis tied = SymmetricEigenbasis(ties, "test");
  EXPECT_GT(tied.eigenvectors(0, 0), 0);
  EXPECT_LT(tied.eigenvectors(1, 0), 0);
  EXPECT_GT(tied.eigenvectors(2, 2), 0);
  EXPECT_LT(tied.eigenvectors(3, 2), 0);
}

TEST(Eigh, ReportedResidualIsTheResidual) {
  const Matrix a = RandomCovariance(128, 3);
  const Eigenbasis basis = SymmetricEigenbasis(a, "test");
  const Matrix& v = basis.eigenvectors;
  const Matrix error = a * v - v * basis.eigenvalues.asDiagonal();
  EXPECT_NEAR(basis.residual, error.norm() / a.norm(), 1e-15);
  EXPECT_GT(basis.residual, 0);
  EXPECT_LE(basis.residual, 1e-12 * std::sqrt(128.0));
  EXPECT_LE((v.transpose() * v - Matrix::Identity(128, 128)).cwiseAbs().maxCoeff(), 1e-13);
}

TEST(Eigh, RepeatedEigenvaluesAreReported) {
  const Eigenbasis basis = SymmetricEigenbasis(Matrix::Identity(16, 16), "test");
  EXPECT_EQ(basis.min_relative_gap, 0);
}

TEST(Eigh, ScaleDoesNotMatter) {
  const Matrix a = RandomCovariance(32, 4);
  for (const double scale : {1e-200, 1e-30, 1e30, 1e200}) {
    const Eigenbasis basis = SymmetricEigenbasis(scale * a, "test");
    EXPECT_LE(basis.residual, 1e-13) << scale;
  }
}

// 400 is large enough for OpenBLAS to split its work over threads.
TEST(Eigh, SameBytesWhateverTheThreadCountAndTheAddress) {
  const int64_t n = 400;
  const Matrix a = RandomCovariance(n, 5);
  oscar_lapack_set_num_threads(1);
  const Eigenbasis expected = SymmetricEigenbasis(a, "test");
  for (const int threads : {2, 3, 4}) {
    oscar_lapack_set_num_threads(threads);
    EXPECT_TRUE(SameBytes(expected, SymmetricEigenbasis(a, "test"))) << threads << " threads";
  }
  for (const int64_t shift : {1, 2, 3, 5}) {  // in doubles; odd shifts break 16-byte alignment
    std::vector<double> memory(static_cast<size_t>(n * n + shift));
    Eigen::Map<Matrix> moved(memory.data() + shift, n, n);
    moved = a;
    EXPECT_TRUE(SameBytes(expected, SymmetricEigenbasis(moved, "test"))) << "shift " << shift;
  }
}

TEST(Eigh, SameBytesFromConcurrentThreads) {
  const Matrix a = RandomCovariance(128, 6);
  const Eigenbasis expected = SymmetricEigenbasis(a, "test");
  std::vector<Eigenbasis> results(8);
  std::vector<std::thread> threads;
  for (Eigenbasis& result : results) {
    threads.emplace_back([&] { result = SymmetricEigenbasis(a, "test"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Eigenbasis& result : results) EXPECT_TRUE(SameBytes(expected, result));
}

TEST(Eigh, BadMatricesAreErrorsThatNameThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  Matrix a = RandomCovariance(4, 7);
  a(2, 1) = nan;
  EXPECT_TRUE(Says(MessageOf(a), "layer 3, KV head 1, query covariance"));
  EXPECT_TRUE(Says(MessageOf(a), "[4, 4] matrix contains NaN or Inf"));
  a(2, 1) = infinity;
  EXPECT_TRUE(Says(MessageOf(a), "NaN or Inf"));
  EXPECT_TRUE(Says(MessageOf(Matrix::Ones(3, 4)), "found [3, 4]"));
  EXPECT_TRUE(Says(MessageOf(Matrix(0, 0)), "found [0, 0]"));
  EXPECT_TRUE(Says(MessageOf(Matrix::Zero(4, 4)), "the head is dead"));
}

}  // namespace
}  // namespace oscar
