// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/key_transform.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <cmath>
#include <string>

#include "linalg/base/error.h"
#include "linalg/eigh.h"
#include "tests/linalg/random_values.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

// Returns tr(X^T S X) tr(X^-1 C X^-T), which the closed forms minimize; C: reader, S: cached.
double TraceProduct(const KeyTransform& transform, MatrixRef reader, MatrixRef cached) {
  return (transform.x.transpose() * cached * transform.x).trace() *
         (transform.inverse * reader * transform.inverse.transpose()).trace();
}

constexpr int64_t kTransformDim = 32;

double MaxOverMean(const Matrix& m) { return m.diagonal().maxCoeff() / m.diagonal().mean(); }

KeyTransform Plain(Matrix x) {
  Matrix inverse = x.inverse();
  return {std::move(x), std::move(inverse)};
}

class Balanced : public testing::Test {
 protected:
  const Matrix c_ = RandomCovariance(kTransformDim, 1), s_ = RandomCovariance(kTransformDim, 2);
  const KeyTransform x_ = BalancedTransform(c_, s_, 0, Composition::kRH, "test");
};

// For every X, the product is at least (sum of the singular values of C^1/2 S^1/2)^2. Its traces
// are tr(S M) and tr(C M^-1), where M = X X^T, and reach the bound if M S M = C. Cholesky factors
// give the same singular values as symmetric roots.
TEST_F(Balanced, ReachesTheLeastTraceProduct) {
  const Matrix c_root = c_.llt().matrixL(), s_root = s_.llt().matrixL();
  const double nuclear = (c_root.transpose() * s_root).jacobiSvd().singularValues().sum();
  EXPECT_NEAR(TraceProduct(x_, c_, s_) / (nuclear * nuclear), 1, 1e-9);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const double size = std::pow(10.0, -static_cast<double>(seed % 5));
    const Matrix step = Matrix::Identity(kTransformDim, kTransformDim) +
                        size * RandomNormal(kTransformDim, kTransformDim, 10 + seed);
    EXPECT_GT(TraceProduct(Plain(x_.x * step), c_, s_), TraceProduct(x_, c_, s_)) << seed;
  }
  EXPECT_GT(TraceProduct(Plain(Matrix::Identity(kTransformDim, kTransformDim)), c_, s_),
            2 * TraceProduct(x_, c_, s_));
}

TEST_F(Balanced, MakesBothSidesTheSameFlatMatrix) {
  const Matrix keys = x_.x.transpose() * s_ * x_.x;
  const Matrix queries = x_.inverse * c_ * x_.inverse.transpose();
  EXPECT_LT((keys - queries).cwiseAbs().maxCoeff(), 1e-9 * keys.norm());
  EXPECT_NEAR(MaxOverMean(keys), 1, 1e-9);
  EXPECT_NEAR(MaxOverMean(queries), 1, 1e-9);
  EXPECT_GT(MaxOverMean(c_), 1.5);  // otherwise flatness is trivial
}

TEST_F(Balanced, IsInvertible) {
  EXPECT_LT(
      (x_.x * x_.inverse - Matrix::Identity(kTransformDim, kTransformDim)).cwiseAbs().maxCoeff(),
      1e-9);
  EXPECT_LT(x_.residual, 1e-10);
  EXPECT_GT(x_.condition, 1);
}

// Scaling up key channels and scaling down the same query channels does not change what is cached.
TEST(BalancedTransform, SeesThroughRescaledChannels) {
  const Matrix c = RandomCovariance(kTransformDim, 1), s = RandomCovariance(kTransformDim, 2);
  Vector f = Vector::Ones(kTransformDim);
  f[3] = 32;
  f[11] = 0.125;
  const Matrix c_twin = f.cwiseInverse().asDiagonal() * c * f.cwiseInverse().asDiagonal();
  const Matrix s_twin = f.asDiagonal() * s * f.asDiagonal();
  for (const double epsilon : {0.0, 1e-3, 0.1}) {
    const KeyTransform own = BalancedTransform(c, s, epsilon, Composition::kRH, "own");
    const KeyTransform twin = BalancedTransform(c_twin, s_twin, epsilon, Composition::kRH, "twin");
    const Matrix own_keys = own.x.cwiseAbs(), twin_keys = (f.asDiagonal() * twin.x).cwiseAbs();
    EXPECT_NEAR(TraceProduct(twin, c_twin, s_twin) / TraceProduct(own, c, s), 1, 1e-9) << epsilon;
    // Compares only norms, because eigenvectors are unique up to their signs, which H mixes.
    EXPECT_NEAR(twin_keys.norm() / own_keys.norm(), 1, 1e-9) << epsilon;
    EXPECT_NEAR(twin.condition / own.condition, 1, 1e-9) << epsilon;
  }
}

TEST(BalancedTransform, ShrinkageBoundsTheConditionNumber) {
  Matrix c = RandomCovariance(kTransformDim, 1), s = RandomCovariance(kTransformDim, 2);
  const Vector direction = RandomNormal(kTransformDim, 1, 3);
  s += 1e6 * direction * direction.transpose();
  double last = INFINITY;
  for (const double epsilon : {1e-6, 1e-4, 1e-2, 1.0}) {
    const double condition = BalancedTransform(c, s, epsilon, Composition::kRH, "test").condition;
    EXPECT_LT(condition, last);
    last = condition;
  }
  EXPECT_LT(last, 8);
  // With fewer tokens than channels the moment is singular, so it must be shrunk first.
  const Matrix few = RandomNormal(kTransformDim / 2, kTransformDim, 4);
  const Matrix singular = few.transpose() * few;
  EXPECT_THROW(BalancedTransform(c, singular, 0, Composition::kRH, "head 5"), NumericalError);
  EXPECT_LT(BalancedTransform(c, singular, 1e-3, Composition::kRH, "head 5").residual, 1e-9);
}

// The inverse is finite, but so ill-conditioned that q k^T would change.
TEST(BalancedTransform, RefusesAnInverseThatIsNone) {
  const Matrix loud = RandomNormal(kTransformDim, 2, 3);
  const auto transform = [&](double quiet, double epsilon) {
    const Matrix c =
        loud * loud.transpose() + quiet * Matrix::Identity(kTransformDim, kTransformDim);
    const Matrix s = c.inverse();
    return BalancedTransform(c, 0.5 * (s + s.transpose()), epsilon, Composition::kRH, "head 5");
  };
  EXPECT_LT(transform(1e-8, 0).residual, kMaxTransformResidual);
  EXPECT_LT(transform(1e-14, 1e-3).residual, kMaxTransformResidual);
  const std::string error = ErrorOf<NumericalError>([&] { transform(1e-14, 0); });
  EXPECT_TRUE(Says(error, "head 5"));
  EXPECT_TRUE(Says(error, "residual of "));
  EXPECT_FALSE(Says(error, "nan"));
}

TEST(BalancedTransform, RefusesWhatIsNoMoment) {
  const Matrix c = RandomCovariance(kTransformDim, 1);
  Matrix indefinite = c;
  indefinite(0, 1) = indefinite(1, 0) = 10 * c.trace();
  EXPECT_THROW(BalancedTransform(c, indefinite, 1e-3, Composition::kRH, "test"), NumericalError);
  EXPECT_THROW(BalancedTransform(c, Matrix::Zero(kTransformDim, kTransformDim), 1e-3,
                                 Composition::kRH, "test"),
               NumericalError);
  EXPECT_THROW(BalancedTransform(c, Matrix::Constant(kTransformDim, kTransformDim, NAN), 1e-3,
                                 Composition::kRH, "test"),
               NumericalError);
}

TEST(BalancedTransform, SaysThatAMomentIsNone) {
  const Matrix c = RandomCovariance(kTransformDim, 1);
  Matrix indefinite = c;
  indefinite(0, 1) = indefinite(1, 0) = 10 * c.trace();
  const std::string error = ErrorOf<NumericalError>(
      [&] { BalancedTransform(indefinite, c, 1e-3, Composition::kRH, "head 5"); });
  EXPECT_TRUE(Says(error, "head 5"));
  EXPECT_TRUE(Says(error, "negative eigenvalue"));
}

TEST(Shrunk, AddsAShareOfTheMeanEigenvalue) {
  const Matrix c = RandomCovariance(kTransformDim, 1);
  const Matrix added = Shrunk(c, 0.5) - c;
  const Matrix expected =
      0.5 * c.trace() / kTransformDim * Matrix::Identity(kTransformDim, kTransformDim);
  EXPECT_LT((added - expected).cwiseAbs().maxCoeff(), 1e-12 * c.trace());
  Matrix one = Matrix::Zero(kTransformDim, kTransformDim);
  one(3, 3) = 7;
  const Vector values = SymmetricEigenbasis(Shrunk(one, 0.1), "test").eigenvalues;
  EXPECT_NEAR(values[kTransformDim - 1] / values[0], kTransformDim / 0.1 + 1,
              1e-6);  // the bound in key_transform.h
}

TEST(RopePairs, KnowBothLayouts) {
  const RopePairs half{8, false}, interleaved{8, true};
  EXPECT_EQ(half.Partner(1), 5);
  EXPECT_EQ(half.Partner(5), 1);
  EXPECT_EQ(half.Partner(8), 8);
  EXPECT_EQ(interleaved.Partner(4), 5);
  EXPECT_EQ(interleaved.Partner(5), 4);
  EXPECT_EQ(interleaved.Partner(11), 11);
  EXPECT_EQ((RopePairs{0, false}.Partner(3)), 3);
}

TEST(PairScales, FollowTheFormula) {
  const Vector c{{1, 2, 3, 4, 5, 6}}, s{{0.5, 1, 2, 7, 0.25, 1}};
  const Vector d = PairScales(c, s, {{4, false}}, "test");  // pairs (0, 2), (1, 3); 4, 5 unpaired
  EXPECT_NEAR(d[0], std::pow(4 / 2.5, 0.25), 1e-15);
  EXPECT_NEAR(d[1], std::pow(6.0 / 8, 0.25), 1e-15);
  EXPECT_EQ(d[2], d[0]);
  EXPECT_EQ(d[3], d[1]);
  EXPECT_NEAR(d[4], std::pow(20.0, 0.25), 1e-15);
  EXPECT_NEAR(d[5], std::pow(6.0, 0.25), 1e-15);
  const Vector powers = PairScales(c, s, {{4, true}, true}, "test");
  EXPECT_EQ(powers, (Vector{{1, 1, 1, 1, 2, 2}}));
}

TEST(PairScales, AreTheLeastOfDiagonalsThatCommuteWithRope) {
  const Matrix c = RandomCovariance(kTransformDim, 1), s = RandomCovariance(kTransformDim, 2);
  const PairScaling scaling{{kTransformDim, false}};
  const auto product = [&](const Vector& d) {
    return s.diagonal().dot(d.cwiseAbs2()) * c.diagonal().dot(d.cwiseInverse().cwiseAbs2());
  };
  const Vector d = PairScales(c.diagonal(), s.diagonal(), scaling, "test");
  for (int64_t i = 0; i < kTransformDim / 2; ++i) {
    for (const double factor : {0.99, 1.01}) {
      Vector other = d;
      other[i] *= factor;
      other[scaling.pairs.Partner(i)] *= factor;
      EXPECT_GT(product(other), product(d));
    }
  }
}

TEST(PairScales, BoundChannelsOutOfUse) {
  const Vector c{{1, 0, 1, 0}}, s{{1, 1, 0, 0}};
  const Vector d = PairScales(c, s, {{0, false}}, "test");
  EXPECT_EQ(d[0], 1);
  EXPECT_NEAR(d[1], 1 / kMaxPairScale, 1e-15);
  EXPECT_NEAR(d[2], kMaxPairScale, 1e-9);
  EXPECT_EQ(d[3], 1);
  // If the channels in use get scale 2, the limits for the other channels are relative to 2.
  const Vector about = PairScales(16 * c, s, {{0, false}}, "test");
  EXPECT_NEAR(about[0], 2, 1e-12);
  EXPECT_NEAR(about[1], 2 / kMaxPairScale, 1e-12);
  EXPECT_NEAR(about[2], 2 * kMaxPairScale, 1e-9);
  EXPECT_NEAR(about[3], 2, 1e-12);
  EXPECT_THROW(PairScales(Vector::Zero(4), s, {{4, false}}, "test"), NumericalError);
  for (const int64_t channel : {0, 1}) {  // the remaining channels are valid
    Vector negative = s;
    negative[channel] = -1e-9;
    EXPECT_THROW(PairScales(c, negative, {{0, false}}, "test"), NumericalError) << channel;
    EXPECT_THROW(PairScales(negative, Vector::Ones(4), {{0, false}}, "test"), NumericalError)
        << channel;
  }
  EXPECT_THROW(PairScales(c, Vector::Constant(4, NAN), {{4, false}}, "test"), NumericalError);
}

TEST(ScaledRotation, IsOscarOfTheScaledQueries) {
  const Matrix c = RandomCovariance(kTransformDim, 1), s = RandomCovariance(kTransformDim, 2);
  const Vector ones = Vector::Ones(kTransformDim);
  const KeyTransform plain = ScaledRotation(ones, c, Composition::kRHPbr, "test");
  EXPECT_EQ(plain.x, Compose(SymmetricEigenbasis(c, "test"), Composition::kRHPbr).matrix());
  const Vector d = PairScales(c.diagonal(), s.diagonal(), {{kTransformDim, false}}, "test");
  const KeyTransform scaled = ScaledRotation(d, c, Composition::kRHPbr, "test");
  EXPECT_LT((scaled.x * scaled.inverse - Matrix::Identity(kTransformDim, kTransformDim))
                .cwiseAbs()
                .maxCoeff(),
            1e-12);
  EXPECT_NEAR(MaxOverMean(scaled.inverse * c * scaled.inverse.transpose()), 1, 1e-10);
  EXPECT_LT(TraceProduct(scaled, c, s), TraceProduct(plain, c, s));
}

TEST(ScaledRotation, RefusesScalesThatAreNotFinite) {
  const Matrix c = RandomCovariance(kTransformDim, 1);
  Vector d = Vector::Ones(kTransformDim);
  d[4] = INFINITY;
  EXPECT_THROW(ScaledRotation(d, c, Composition::kRHPbr, "test"), NumericalError);
}

TEST(Centred, TakesTheMeanAway) {
  const Matrix rows = RandomNormal(50, 4, 1).array() + 3;
  const Vector mean = rows.colwise().mean().transpose();
  const Matrix centred = rows.rowwise() - mean.transpose();
  const Matrix expected = centred.transpose() * centred / 50;
  EXPECT_LT((Centred(rows.transpose() * rows / 50, mean) - expected).cwiseAbs().maxCoeff(), 1e-13);
}

}  // namespace
}  // namespace oscar
