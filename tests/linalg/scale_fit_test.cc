// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/scale_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

using Row = std::vector<double>;
constexpr int64_t kRowDim = 128;
constexpr RowClip kClip = {0.92, ClipMethod::kSort};

Row Read(const Row& x, const AffineFormat& format, const RowClip& clip = kClip) {
  Row y(x.size());
  QuantizeDequantizeAffineRow<double>(x, format, clip, y);
  return y;
}

double MeanOf(const Row& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double Covariance(const Row& x, const Row& y) {
  const double x_mean = MeanOf(x), y_mean = MeanOf(y);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - x_mean) * (y[i] - y_mean);
  return sum;
}

double SquaredError(const Row& x, const Row& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

Row Offset(int64_t dim, uint64_t seed) {
  Row x = RandomRows(1, dim, seed);
  for (double& value : x) value += 0.7;
  return x;
}

// Returns the largest error of rounding a value to steps: half a step, in the row's units.
double HalfAStep(const Row& x, int bits) {
  const auto [min, max] = std::ranges::minmax(x);
  return (max - min) / MaxCode(bits) / ScaleSteps(bits) / 2;
}

TEST(ScaleFit, UnbiasedRowsKeepTheirLengthAlongThemselvesAndTheirMean) {
  for (const int bits : {2, 3, 4}) {
    double shrunk = 0;
    for (uint64_t seed = 1; seed < 40; ++seed) {
      const Row x = Offset(kRowDim, seed);
      const AffineFormat range{bits, kRowDim}, fitted{bits, kRowDim, {}, ScaleFit::kUnbiased};
      const Row y = Read(x, fitted);
      const double length = Covariance(x, x), bound = HalfAStep(x, bits);
      // The fit rounds values to steps and clamps them to kMaxScaleSteps; none of these rows is
      // clamped.
      EXPECT_NEAR(Covariance(x, y), length,
                  2 * bound * std::sqrt(kRowDim * std::max(length, Covariance(y, y))))
          << bits << " " << seed;
      EXPECT_NEAR(MeanOf(y), MeanOf(x), bound) << bits;
      shrunk += Covariance(x, Read(x, range)) / length / 39;
    }
    EXPECT_LT(shrunk, bits == 2 ? 0.95 : 1);  // a range-based scale shrinks rows
  }
}

// Computes the fit independently, from unrounded values: the least-squares line through the codes
// that the range's scale gives.
TEST(ScaleFit, TheFirstFitIsLeastSquares) {
  for (const int bits : {2, 3, 4}) {
    for (uint64_t seed = 1; seed < 20; ++seed) {
      const Row x = Offset(64, seed);
      const AffineGroup<double> range = FitAffine<double>(x, MaxCode(bits));
      const AffineGroup<double> fitted =
          FitScale<double>(x, range, bits, ScaleFit::kUnbiased).rounds;
      Row codes;
      for (const double value : x) codes.push_back(AffineCode(value, range, MaxCode(bits)));
      const double bound = HalfAStep(x, bits), spread = Covariance(codes, codes);
      double reach = 0;
      for (const double code : codes) reach += std::abs(code - MeanOf(codes));
      EXPECT_NEAR(fitted.scale, Covariance(codes, x) / spread, bound * reach / spread) << bits;
      EXPECT_NEAR((MeanOf(codes) - fitted.zero) * fitted.scale, MeanOf(x), bound) << bits;
    }
  }
}

// The extra rounding gives the smallest error of the three fits, and less bias than the range's
// scale.
TEST(ScaleFit, RoundingOnceMoreTradesBiasForError) {
  double bias[3] = {}, error[3] = {};
  for (uint64_t seed = 1; seed < 200; ++seed) {
    const Row x = Offset(64, seed);
    for (const ScaleFit fit : {ScaleFit::kRange, ScaleFit::kUnbiased, ScaleFit::kUnbiasedRounded}) {
      const Row y = Read(x, {2, 64, {}, fit});
      bias[static_cast<int>(fit)] += 1 - Covariance(x, y) / Covariance(x, x);
      error[static_cast<int>(fit)] += SquaredError(x, y) / Covariance(x, x);
    }
  }
  EXPECT_GT(bias[0], 10);
  EXPECT_LT(std::abs(bias[1]), 0.05 * bias[0]);
  EXPECT_LT(std::abs(bias[2]), 0.8 * bias[0]);
  EXPECT_LT(error[2], error[0]);
  EXPECT_LT(error[2], error[1]);
}

TEST(ScaleFit, GroupsAreFittedApart) {
  Row x = Offset(64, 3);
  for (size_t i = 32; i < 64; ++i) x[i] = 40 * x[i] - 500;
  const Row y = Read(x, {2, 32, {}, ScaleFit::kUnbiased}, {});
  for (const size_t begin : {0, 32}) {
    const Row group(x.begin() + begin, x.begin() + begin + 32);
    const Row read(y.begin() + begin, y.begin() + begin + 32);
    EXPECT_EQ(read, Read(group, {2, 32, {}, ScaleFit::kUnbiased}, {}));
  }
}

TEST(ScaleFit, RowsThatDoNotVaryAndWideCodesAreWrittenByTheirRange) {
  for (const ScaleFit fit : {ScaleFit::kUnbiased, ScaleFit::kUnbiasedRounded}) {
    for (const double value : {0.0, 3.0, -1e20}) {
      const Row x(kRowDim, value);
      EXPECT_EQ(Read(x, {2, kRowDim, {}, fit}), Read(x, {2, kRowDim}));
    }
    const Row x = Offset(kRowDim, 9);
    EXPECT_EQ(Read(x, {8, kRowDim, {}, fit}), Read(x, {8, kRowDim}));
    EXPECT_NE(Read(x, {4, kRowDim, {}, fit}), Read(x, {4, kRowDim}));
  }
}

TEST(ScaleFit, AnOutlierThatWasClippedMovesTheRestLittle) {
  Row x = RandomRows(1, kRowDim, 5);
  x[17] = 1e6;
  const Row y = Read(x, {2, kRowDim, {}, ScaleFit::kUnbiased});
  x[17] = y[17];
  EXPECT_LT(std::abs(*std::ranges::max_element(y, {}, [](double v) { return std::abs(v); })), 8);
}

}  // namespace
}  // namespace oscar
