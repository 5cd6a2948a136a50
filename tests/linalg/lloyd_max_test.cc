// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares quantizer tables with Max (1960) and TurboQuant (arXiv 2504.19874), and tests worked
// examples of the codecs.
#include "linalg/lloyd_max.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/reference/scalar_lloyd_max.h"

namespace oscar {
namespace {

using Doubles = std::vector<double>;

// Returns the positive half of a symmetric table.
Doubles Upper(const Doubles& values) {
  return {values.begin() + static_cast<int64_t>(values.size() / 2), values.end()};
}

void ExpectNear(const Doubles& actual, const Doubles& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

// Returns E (t - Q(t))^2 by Simpson's rule in each cell, where t is sqrt(dim) times a coordinate of
// a uniform point on the unit sphere in R^dim; dim 0: t is N(0, 1).
double Distortion(const LevelTable& table, double dim) {
  const double end = dim == 0 ? 14 : std::min(std::sqrt(dim), 14.0);
  const auto density = [dim](double t) {
    return dim == 0 ? std::exp(-t * t / 2)
                    : std::pow(std::max(0.0, 1 - t * t / dim), (dim - 3) / 2);
  };
  Doubles edges = {-end};
  edges.insert(edges.end(), table.thresholds.begin(), table.thresholds.end());
  edges.push_back(end);
  double error = 0, mass = 0;
  for (size_t cell = 0; cell < table.levels.size(); ++cell) {
    constexpr int kSteps = 2000;
    const double step = (edges[cell + 1] - edges[cell]) / kSteps;
    for (int i = 0; i <= kSteps; ++i) {
      const double t = edges[cell] + i * step, off = t - table.levels[cell];
      const double weight = (i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2) * step * density(t);
      error += weight * off * off;
      mass += weight;
    }
  }
  return error / mass;
}

double NormalDistortion(const LevelTable& table) { return Distortion(table, 0); }

// A dimension so large that the sphere's levels equal those of N(0, 1) to within 2e-5.
constexpr int64_t kNormal = int64_t{1} << 20;

TEST(LloydMax, OfTheNormalDistribution) {
  const struct {
    Doubles levels, thresholds;
    double distortion, sqnr;
  } kExpected[] = {{{0.7978845608}, {0}, 0.3633802276, 4.3964},
                   {{0.4527800346, 1.5104176085}, {0, 0.9815988216}, 0.1174818478, 9.3003},
                   {{0.2450941789, 0.7560052812, 1.3439092785, 2.1519457045},
                    {0, 0.5005497301, 1.0499572799, 1.7479274915},
                    0.0345477608,
                    14.6158},
                   {{0.1283950299, 0.3880482995, 0.6567591185, 0.9423404565, 1.2562311973,
                     1.6180463860, 2.0690172265, 2.7325895710},
                    {0, 0.2582216647, 0.5224037090, 0.7995497875, 1.0992858269, 1.4371387917,
                     1.8435318063, 2.4008033988},
                    0.0095010080,
                    20.2223}};
  for (int bits = 1; bits <= 4; ++bits) {
    const LevelTable table = SphereLloydMax(bits, kNormal);
    const auto& expected = kExpected[bits - 1];
    ExpectNear(Upper(table.levels), expected.levels, 2e-5);
    ExpectNear(Upper(table.thresholds), expected.thresholds, 2e-5);
    EXPECT_NEAR(NormalDistortion(table), expected.distortion, 1e-10);
    EXPECT_NEAR(-10 * std::log10(NormalDistortion(table)), expected.sqnr, 5e-5);
  }
}

TEST(LloydMax, AsVllmSolvesIt) {
  const LevelTable two = TrapezoidLloydMax(2, 128);
  ExpectNear(Upper(two.levels), {0.4525719, 1.5095586}, 5e-8);
  EXPECT_NEAR(two.thresholds[2], 0.9810653, 5e-8);
  // These are OSCAR's serving constants, to seven digits.
  EXPECT_NEAR(two.levels[3], 1.5095585584640503, 1e-7);
  EXPECT_NEAR(two.thresholds[2], kServingThreshold, 1e-7);
  ExpectNear(Upper(TrapezoidLloydMax(3, 128).levels), {0.2449836, 0.7556455, 1.3431800, 2.1503495},
             5e-8);
  const Doubles four = Upper(TrapezoidLloydMax(4, 128).levels);
  EXPECT_NEAR(four.back(), 2.7309222, 5e-8);
  EXPECT_NEAR(four.front(), 0.1284277, 5e-8);
  for (int bits = 1; bits <= 3; ++bits) {
    EXPECT_NEAR(NormalDistortion(TrapezoidLloydMax(bits, 128)),
                NormalDistortion(SphereLloydMax(bits, kNormal)), 1e-6);
  }
}

TEST(LloydMax, OnTheSphere) {
  const double expected[2][4] = {{0.358387, 0.114526, 0.033391, 0.009132},
                                 {0.360889, 0.116000, 0.033966, 0.009315}};
  for (int bits = 1; bits <= 4; ++bits) {
    for (const int64_t dim : {64, 128}) {
      const LevelTable table = SphereLloydMax(bits, dim);
      EXPECT_NEAR(Distortion(table, static_cast<double>(dim)), expected[dim / 128][bits - 1], 5e-7);
      for (size_t i = 0; i < table.levels.size(); ++i)  // symmetric to the last bit
        EXPECT_EQ(table.levels[i], -table.levels[table.levels.size() - 1 - i]) << i;
    }
  }
  const LevelTable two = SphereLloydMax(2, 128);
  ExpectNear(Upper(two.levels), {0.452453, 1.505193}, 5e-7);
  EXPECT_NEAR(two.thresholds[2], 0.978823, 5e-7);
  EXPECT_NEAR(SphereLloydMax(1, 128).levels[1], 0.799444, 5e-7);
  EXPECT_NEAR(SphereLloydMax(1, 64).levels[1], 0.801007, 5e-7);
}

LevelTable TableOf(LloydMaxForm form) {
  const LloydMaxTable& table = LloydMaxTableOf(form);
  return {{table.levels.begin(), table.levels.end()},
          {table.thresholds.begin(), table.thresholds.end()}};
}

TEST(LloydMaxCodec, DistortionsOfTheThreeForms) {
  EXPECT_NEAR(kServingScale, 1.1673919519, 5e-11);
  const LevelTable serving = TableOf(LloydMaxForm::kServing);
  ExpectNear(Upper(serving.levels), {0.5836960, 1.7510879}, 5e-8);
  EXPECT_NEAR(NormalDistortion(serving), 0.1480426, 5e-8);
  LevelTable unscaled = serving;
  for (double& level : unscaled.levels) level /= 1.16;
  EXPECT_NEAR(NormalDistortion(unscaled), 0.1192071, 5e-8);
  EXPECT_NEAR(NormalDistortion(TableOf(LloydMaxForm::kLlamaCpp)), 0.1895576, 5e-8);
  EXPECT_NEAR(NormalDistortion(TableOf(LloydMaxForm::kExact)), 0.11748, 5e-6);
}

// The mean is 10, and blocks have a root mean square of 4 or 2. The outer level is 0.9816 sigma.
TEST(LloydMaxCodec, LlamaCppsBlocks) {
  std::vector<float> x(128), y(128), numbers(8);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 10 + (i % 2 == 0 ? 1.F : -1.F) * (i < 32 ? 4.F : 2.F);
  x[126] = 11;  // sigma / 2 above the mean: the inner level
  x[127] = 9;
  std::vector<uint8_t> codes(128);
  EncodeLloydMax<float>(x, LloydMaxForm::kLlamaCpp, StoredFloat::kFloat32, codes, numbers);
  DecodeLloydMax<float>(codes, numbers, LloydMaxForm::kLlamaCpp, y);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(codes[i], i % 2 == 0 ? 3 : 0);
    EXPECT_FLOAT_EQ(y[i], 10 + (i % 2 == 0 ? 1.F : -1.F) * (i < 32 ? 4.F : 2.F) * 0.9816F);
  }
  const float sigma = RoundToFloat16(std::sqrt((30 * 4 + 2) / 32.F));
  EXPECT_EQ(numbers[6], sigma);
  EXPECT_EQ(numbers[7], 10);
  EXPECT_EQ(codes[126], 2);
  EXPECT_FLOAT_EQ(y[127], 10 - sigma * 0.4528F);
}

TEST(LloydMaxCodec, LlamaCppsGroupsDivideTheRow) {
  const std::vector<std::array<int64_t, 3>> cases = {{256, 128, 32}, {192, 192, 32}, {80, 80, 80}};
  for (const auto& [dim, mean, scale] : cases) {
    const LloydMaxGroups groups = LloydMaxGroupsOf(LloydMaxForm::kLlamaCpp, dim);
    EXPECT_EQ(groups.mean, mean);
    EXPECT_EQ(groups.scale, scale);
  }
}

}  // namespace
}  // namespace oscar
