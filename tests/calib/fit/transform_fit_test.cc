// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests which moments each transform uses: whose head, whether the mean is subtracted, and which
// columns of o_proj. tests/linalg/key_transform_test.cc tests the transforms themselves.
#include "calib/fit/transform_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "linalg/base/error.h"
#include "linalg/eigh.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

constexpr RopePairs kPairs = {.rotary_dim = 4};  // pairs (0, 2) and (1, 3) of 8 channels

// Returns moments of keys with a large mean in two channels: 4 is added to channel 0, where the
// spread is 1, and 2 or -3 to channel 5.
LayerMoments Moments() {
  LayerMoments m = SampleMoments(3, 200, 5);
  const auto tokens = static_cast<double>(m.tokens);
  for (size_t head = 0; head < 2; ++head) {
    Vector shift = Vector::Zero(8), sum(8);
    shift[0] = 4;
    shift[5] = head == 0 ? 2 : -3;
    for (size_t i = 0; i < 8; ++i) sum[static_cast<Eigen::Index>(i)] = m.key_sum[head * 8 + i];
    const Matrix more =
        shift * sum.transpose() + sum * shift.transpose() + tokens * shift * shift.transpose();
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < 8; ++j)
        m.key[(head * 8 + i) * 8 + j] +=
            more(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
      m.key_sum[head * 8 + i] += tokens * shift[static_cast<Eigen::Index>(i)];
    }
  }
  return m;
}

Matrix KeyMoment(const LayerMoments& m, int64_t head, bool centred) {
  const Matrix second = m.KeySecondMoment(head);
  const Vector mean = m.KeyMean(head);
  return centred ? Matrix(second - mean * mean.transpose()) : second;
}

double Apart(const Matrix& a, const Matrix& b) { return (a - b).norm() / b.norm(); }

TEST(KeyTransformKind, NamesComeBack) {
  for (const auto kind :
       {KeyTransformKind::kOscar, KeyTransformKind::kPairScaled, KeyTransformKind::kBalanced})
    EXPECT_EQ(KeyTransformFromName(KeyTransformName(kind)), kind);
  EXPECT_EQ(KeyTransformName(KeyTransformKind::kPairScaled), "pair_scaled");
  EXPECT_THROW(KeyTransformFromName("hadamard"), UsageError);
  EXPECT_EQ(KeyRecipe{.kind = KeyTransformKind::kPairScaled}.Name(),
            "pair_scaled shared r_h_pbr");  // folding is the default and not named
}

TEST(TransformFit, OscarIsTheRotationOfTheHeadsOwnQueries) {
  const LayerMoments m = Moments();
  for (const int64_t head : {0, 1}) {
    const KeyFit fit =
        FitKeyTransform(m, head, {.centred = true, .composition = Composition::kRH}, {});
    const Matrix r =
        Compose(SymmetricEigenbasis(m.QueryCovariance(head), "test"), Composition::kRH).matrix();
    EXPECT_LT(Apart(fit.transform.x, r), 1e-12) << head;
    EXPECT_LT(Apart(fit.transform.inverse, r.transpose()), 1e-12) << head;
    EXPECT_EQ(fit.mean, m.KeyMean(head));
    EXPECT_NEAR(fit.mean[0], 4.3, 0.3);
  }
  EXPECT_EQ(FitKeyTransform(m, 0, {}, {}).mean.size(), 0);
}

// d^4 = c / s, each summed over a RoPE pair; s is taken about the mean if keys are centred.
TEST(TransformFit, PairScalesAreThoseOfTheHeadAndOfWhatIsQuantized) {
  const LayerMoments m = Moments();
  for (const bool centred : {true, false}) {
    for (const int64_t head : {0, 1}) {
      const KeyRecipe recipe = {.kind = KeyTransformKind::kPairScaled, .centred = centred};
      const Vector c = m.QueryCovariance(head).diagonal(),
                   s = KeyMoment(m, head, centred).diagonal();
      const Vector d = HeadPairScales(m, head, recipe, kPairs);
      EXPECT_NEAR(d[0], std::pow((c[0] + c[2]) / (s[0] + s[2]), 0.25), 1e-12);
      EXPECT_NEAR(d[3], std::pow((c[1] + c[3]) / (s[1] + s[3]), 0.25), 1e-12);
      EXPECT_NEAR(d[5], std::pow(c[5] / s[5], 0.25), 1e-12);
      const KeyTransform fit = FitKeyTransform(m, head, recipe, kPairs).transform;
      const KeyTransform expected =
          ScaledRotation(d, m.QueryCovariance(head), Composition::kRHPbr, "test");
      EXPECT_LT(Apart(fit.x, expected.x), 1e-12);
    }
  }
  for (const double d : HeadPairScales(m, 0, {.power_of_two = true, .centred = true}, kPairs))
    EXPECT_EQ(std::log2(d), std::round(std::log2(d)));
}

TEST(TransformFit, BalancedKeysMeetTheLeastTraceProduct) {
  const LayerMoments m = Moments();
  for (const bool centred : {true, false}) {
    const KeyFit fit =
        FitKeyTransform(m, 1, {.kind = KeyTransformKind::kBalanced, .centred = centred}, {});
    const Matrix keys = fit.transform.x.transpose() * KeyMoment(m, 1, centred) * fit.transform.x;
    const Matrix queries =
        fit.transform.inverse * m.QueryCovariance(1) * fit.transform.inverse.transpose();
    EXPECT_LT(Apart(keys, queries), 1e-9) << centred;
  }
  const auto condition = [&](double epsilon) {
    return FitKeyTransform(m, 0, {.kind = KeyTransformKind::kBalanced, .epsilon = epsilon}, {})
        .transform.condition;
  };
  EXPECT_LT(condition(1), condition(1e-3));
}

// No other diagonal that commutes with rope has a lower sum of the heads' trace products.
TEST(TransformFit, SharedScalesAreTheLeastSumOverHeads) {
  const LayerMoments m = Moments();
  for (const bool centred : {true, false}) {
    const KeyRecipe recipe = {.kind = KeyTransformKind::kPairScaled, .centred = centred};
    const auto sum = [&](const Vector& d) {
      double total = 0;
      for (const int64_t head : {0, 1}) {
        total += KeyMoment(m, head, centred).diagonal().dot(d.cwiseAbs2()) *
                 m.QueryCovariance(head).diagonal().dot(d.cwiseInverse().cwiseAbs2());
      }
      return total;
    };
    const Vector d = SharedPairScales(m, recipe, kPairs);
    EXPECT_EQ(d[0], d[2]);
    EXPECT_EQ(d[1], d[3]);
    for (int64_t i : {0, 1, 4, 5, 6, 7}) {
      for (const double factor : {0.999, 1.001}) {
        Vector other = d;
        other[i] *= factor;
        if (kPairs.Partner(i) != i) other[kPairs.Partner(i)] *= factor;
        EXPECT_GT(sum(other), sum(d)) << i;
      }
    }
    for (const int64_t head : {0, 1})
      EXPECT_LT(sum(d), sum(HeadPairScales(m, head, recipe, kPairs)));
    // The scales are stationary: d^4 = sum_h S_h c_h / sum_h C_h s_h, where S_h and C_h are the
    // traces of head h after scaling.
    Vector c = Vector::Zero(8), k = Vector::Zero(8);
    for (const int64_t head : {0, 1}) {
      const Vector key = KeyMoment(m, head, centred).diagonal(),
                   query = m.QueryCovariance(head).diagonal();
      c += key.dot(d.cwiseAbs2()) * query;
      k += query.dot(d.cwiseInverse().cwiseAbs2()) * key;
    }
    EXPECT_NEAR(std::pow(d[0], 4) / ((c[0] + c[2]) / (k[0] + k[2])), 1, 1e-10);
    EXPECT_NEAR(std::pow(d[7], 4) / (c[7] / k[7]), 1, 1e-10);
  }
  for (const double d : SharedPairScales(m, {.power_of_two = true, .centred = true}, kPairs))
    EXPECT_EQ(std::log2(d), std::round(std::log2(d)));
}

// The two heads need opposite scales, so the optimum is far from the scales of their summed
// moments.
TEST(TransformFit, SharedScalesOfHeadsThatDifferAreStationary) {
  LayerMoments m = Moments();
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      const double loud = (i < 4 ? 1 : 100) * (j < 4 ? 1 : 100);
      m.key[(0 * 8 + i) * 8 + j] *= loud;
      m.query[(1 * 8 + i) * 8 + j] *= 1e4 * loud;
    }
  }
  const Vector d = SharedPairScales(m, {.kind = KeyTransformKind::kPairScaled}, kPairs);
  Vector c = Vector::Zero(8), k = Vector::Zero(8);
  for (const int64_t head : {0, 1}) {
    const Vector key = KeyMoment(m, head, false).diagonal(),
                 query = m.QueryCovariance(head).diagonal();
    c += key.dot(d.cwiseAbs2()) * query;
    k += query.dot(d.cwiseInverse().cwiseAbs2()) * key;
  }
  for (const int64_t i : {4, 5, 6, 7}) EXPECT_NEAR(std::pow(d[i], 4) / (c[i] / k[i]), 1, 1e-6);
  EXPECT_NEAR(std::pow(d[0], 4) / ((c[0] + c[2]) / (k[0] + k[2])), 1, 1e-6);
}

// For the metric M and a value's error e, e M e^T is the energy of e after the head's columns of
// o_proj.
TEST(TransformFit, TheOutputMetricIsOfTheHeadsColumns) {
  const LayerMoments m = Moments();  // query heads 0, 1 read KV head 0; 2, 3 read 1
  const Matrix projection = RandomNormal(10, 4 * 4, 1);
  const Vector e = RandomNormal(4, 1, 2);
  for (const int64_t head : {0, 1}) {
    double energy = 0;
    for (const int64_t q : {2 * head, 2 * head + 1})
      energy += (projection.middleCols(q * 4, 4) * e).squaredNorm();
    EXPECT_NEAR(e.dot(OutputMetric(projection, m, head) * e), energy, 1e-12 * energy);
  }
}

TEST(TransformFit, BalancedValuesMakeBothSidesOneMatrix) {
  const LayerMoments m = Moments();
  const Matrix metric = OutputMetric(RandomNormal(10, 4 * 4, 1), m, 1);
  const KeyTransform fit = FitValueTransform(m, 1, metric, 0, Composition::kRH);
  const Matrix values = fit.x.transpose() * m.ValueSecondMoment(1) * fit.x,
               readers = fit.inverse * metric * fit.inverse.transpose();
  EXPECT_LT(Apart(values, readers), 1e-9);
  EXPECT_NEAR(values.diagonal().maxCoeff() / values.diagonal().mean(), 1, 1e-9);  // H comes last
  EXPECT_GT(Apart(fit.x.transpose() * m.ValueSecondMoment(0) * fit.x, readers), 1e-2);
  // With eigenvectors alone, the matrix is diagonal but not flat.
  const KeyTransform plain = FitValueTransform(m, 1, metric, 0, Composition::kPlain);
  const Matrix eigenvalues = plain.x.transpose() * m.ValueSecondMoment(1) * plain.x;
  EXPECT_LT(Apart(Matrix(eigenvalues.diagonal().asDiagonal()), eigenvalues), 1e-9);
  EXPECT_GT(eigenvalues.diagonal().maxCoeff() / eigenvalues.diagonal().mean(), 1.01);
  // The shrinkage has an effect.
  EXPECT_GT(Apart(FitValueTransform(m, 1, metric, 0.3, Composition::kRH).x, fit.x), 1e-3);
}

}  // namespace
}  // namespace oscar
