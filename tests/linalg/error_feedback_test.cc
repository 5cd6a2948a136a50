// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/error_feedback.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "linalg/base/error.h"
#include "linalg/feedback_codec.h"
#include "linalg/key_transform.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

constexpr int64_t kDim = 64;

TEST(FeedbackFactor, IsTheTriangularFactorOfTheDampedMetric) {
  const Matrix metric = RandomCovariance(kDim, 1);
  const Matrix factor = FeedbackFactor(metric, 0.2, "test");
  EXPECT_EQ(factor.triangularView<Eigen::Lower>().toDenseMatrix().cwiseAbs().maxCoeff(), 0);
  const Matrix unit = factor + Matrix::Identity(kDim, kDim);
  // The entries are 8-bit integers times a power of two.
  const double largest = factor.cwiseAbs().maxCoeff(),
               power = std::exp2(std::ceil(std::log2(largest / kMaxFeedback)));
  EXPECT_EQ((factor / power - (factor / power).array().rint().matrix()).cwiseAbs().maxCoeff(), 0);
  EXPECT_LE(largest / power, kMaxFeedback);
  EXPECT_GT(largest / power, kMaxFeedback / 2);
  // U D U^T equals the metric up to the rounding of U, which is half a unit per entry.
  const Matrix damped = Shrunk(metric, 0.2);
  const Matrix inverse = unit.inverse();
  Matrix rest = inverse * damped * inverse.transpose();
  const Vector d = rest.diagonal();
  EXPECT_GT(d.minCoeff(), 0);
  rest.diagonal().setZero();
  EXPECT_LT(rest.cwiseAbs().maxCoeff(), 0.03 * d.maxCoeff());
}

TEST(FeedbackFactor, OfWhiteReadersIsNothing) {
  EXPECT_LT(FeedbackFactor(Matrix::Identity(8, 8), 0.1, "test").cwiseAbs().maxCoeff(), 1e-15);
}

TEST(FeedbackFactor, RefusesAMetricWithoutOne) {
  Matrix metric = Matrix::Identity(4, 4);
  metric(2, 2) = -3;
  EXPECT_THROW(FeedbackFactor(metric, 0.1, "layer 3"), NumericalError);
}

TEST(PackFeedbackFactor, HasEveryIntegerThoseOfAColumnsOwnBlockBehindIt) {
  const Matrix factor = FeedbackFactor(RandomCovariance(kDim, 3), 0.2, "test");
  const PackedFeedback packed = PackFeedbackFactor(factor);
  for (int64_t j = 0; j < kDim; ++j) {
    const int8_t* column = packed.columns.data() + j * FeedbackStride(kDim);
    const int64_t block = j / kFeedbackBlock * kFeedbackBlock;
    for (int64_t i = 0; i < kDim; ++i) {
      const bool own = i >= block && i < block + kFeedbackBlock;
      EXPECT_EQ(column[i] * double{packed.unit}, own ? 0 : factor(i, j));
      if (own) {
        EXPECT_EQ(column[kDim + i - block] * double{packed.unit}, factor(i, j));
      }
    }
  }
  Matrix wrong = factor;
  wrong(3, 2) = packed.unit;  // below the diagonal
  EXPECT_THROW(PackFeedbackFactor(wrong), NumericalError);
  wrong = factor;
  wrong(0, 1) += packed.unit / 2;
  EXPECT_THROW(PackFeedbackFactor(wrong), NumericalError);
}

TEST(PackFeedbackFactor, OfNothingIsZeros) {
  const PackedFeedback packed = PackFeedbackFactor(Matrix::Zero(8, 8));
  EXPECT_EQ(packed.unit, 1);
  EXPECT_EQ(std::ranges::count(packed.columns, 0), std::ssize(packed.columns));
}

TEST(CodeShare, HasExactProductsWithCodes) {
  for (const int bits : {2, 3, 4}) {
    const float share = CodeShare(bits);
    for (int code = 0; code <= MaxCode(bits); ++code) {
      const float of_code = static_cast<float>(code) * share;
      EXPECT_EQ(of_code, code * double{share});
      EXPECT_EQ(std::nearbyint(of_code * MaxCode(bits)), code);
    }
    EXPECT_NEAR(share * MaxCode(bits), 1, 0x1p-18);
  }
}

TEST(ScalarFeedback, TreatsRowsThatBreakCodecsAsThePlainCodec) {
  const Matrix factor = FeedbackFactor(RandomCovariance(kDim, 3), 0.2, "test");
  std::vector<float> row_major;
  for (int64_t i = 0; i < kDim; ++i) {
    for (int64_t j = 0; j < kDim; ++j) row_major.push_back(static_cast<float>(factor(i, j)));
  }
  const AffineFormat format{.bits = 2, .quant_group_size = kDim};
  std::vector<float> x(kDim, 3), y(kDim);
  QuantizeDequantizeWithFeedback<float>(x, format, {0.96, ClipMethod::kSort}, row_major, y);
  for (const float value : y) EXPECT_NEAR(value, 3, 1e-6);
  for (const float bad : {NAN, INFINITY, 3e38F}) {
    for (const double ratio : {0.0, 0.96}) {
      x.assign(kDim, -3e38F);
      x[5] = bad;
      x[6] = x[7] = x[8] = x[9] = 3e38F;
      EXPECT_THROW(QuantizeDequantizeWithFeedback<float>(x, format, {ratio, ClipMethod::kSort},
                                                         row_major, y),
                   NumericalError);
    }
  }
}

// Returns true if no code decodes to a value nearer to x than y, with a tolerance of 2^-16 of a
// step.
bool IsNearest(double x, double y, double scale, double zero, int max_code) {
  double least = INFINITY;
  for (int code = 0; code <= max_code; ++code)
    least = std::min(least, std::abs(x - (code - zero) * scale));
  return std::abs(x - y) <= least + 0x1p-16 * scale;
}

// Feedback reduces the reader's error for every clip ratio. With a zero factor, every value is
// rounded to the nearest decoded value.
TEST(ScalarFeedback, CostsTheReaderLess) {
  const Matrix metric = RandomCovariance(kDim, 2);
  const Matrix factor = FeedbackFactor(metric, 0.2, "test");
  std::vector<double> row_major(kDim * kDim);
  const std::vector<float> none(kDim * kDim);
  for (int64_t i = 0; i < kDim; ++i) {
    for (int64_t j = 0; j < kDim; ++j) row_major[static_cast<size_t>(i * kDim + j)] = factor(i, j);
  }
  const AffineFormat format{.bits = 2, .quant_group_size = 32};
  for (const double ratio : {0.0, 0.9}) {
    const RowClip clip{ratio, ClipMethod::kSort};
    double plain_cost = 0, cost = 0;
    for (uint64_t seed = 10; seed < 40; ++seed) {
      const std::vector<double> x = RandomRows(1, kDim, seed);
      std::vector<double> plain(kDim), fed(kDim);
      const std::vector<float> narrow(x.begin(), x.end());
      std::vector<float> unfed(kDim), scales_zeros(4);
      std::vector<uint8_t> codes(kDim);
      for (const MetadataType type :
           {MetadataType::kByte, MetadataType::kBFloat16, MetadataType::kFloat32}) {
        const AffineFormat typed{2, 32, type};
        EncodeAffineRowWithFeedback<float>(narrow, typed, clip, none, codes, scales_zeros);
        QuantizeDequantizeWithFeedback<float>(narrow, typed, clip, none, unfed);
        for (size_t i = 0; i < narrow.size(); ++i) {
          const size_t g = i / 32 * 2;
          EXPECT_TRUE(IsNearest(narrow[i], unfed[i], scales_zeros[g], scales_zeros[g + 1], 3));
        }
      }
      QuantizeDequantizeAffineRow<double>(x, format, clip, plain);
      QuantizeDequantizeWithFeedback<double>(x, format, clip, row_major, fed);
      const auto error = [&](const std::vector<double>& y) {
        const Vector e =
            Eigen::Map<const Vector>(x.data(), kDim) - Eigen::Map<const Vector>(y.data(), kDim);
        return e.dot(metric * e);
      };
      plain_cost += error(plain);
      cost += error(fed);
    }
    EXPECT_LT(cost, 0.75 * plain_cost) << ratio;
  }
}

TEST(ScalarFeedback, ReadsEachGroupByItsOwnScale) {
  constexpr int64_t kGroup = kDim / 2;
  const Matrix factor = FeedbackFactor(RandomCovariance(kGroup, 4), 0.2, "test");
  std::vector<double> of_group(kGroup * kGroup), of_row(kDim * kDim);
  for (int64_t i = 0; i < kGroup; ++i) {
    for (int64_t j = 0; j < kGroup; ++j) {
      of_group[static_cast<size_t>(i * kGroup + j)] = factor(i, j);
      of_row[static_cast<size_t>((kGroup + i) * kDim + kGroup + j)] = factor(i, j);
    }
  }
  const AffineFormat format{.bits = 2, .quant_group_size = kGroup};
  std::vector<double> x = RandomRows(1, kDim, 8), y(kDim), alone(kGroup);
  for (size_t i = kGroup; i < kDim; ++i) x[i] *= 50;
  QuantizeDequantizeWithFeedback<double>(x, format, {}, of_row, y);
  QuantizeDequantizeWithFeedback<double>(std::span<const double>(x).last(kGroup), format, {},
                                         of_group, alone);
  EXPECT_EQ(std::vector<double>(y.begin() + kGroup, y.end()), alone);
}

// Feedback between groups is in units of the values. Errors of a group 50 times narrower hardly
// change codes of the wider group; errors of the wider group push the narrower group's codes to 0
// and 3.
TEST(ScalarFeedback, ErrorsOfOtherGroupsAreOfTheirScale) {
  constexpr size_t kSize = kDim, kGroup = kSize / 2;
  const AffineFormat format{.bits = 2, .quant_group_size = kGroup};
  std::vector<float> factor(kSize * kSize), scales_zeros(4);
  const std::vector<float> none(kSize * kSize);
  for (size_t i = 0; i < kGroup; ++i) {
    for (size_t j = kGroup; j < kSize; ++j) factor[i * kSize + j] = (i + j) % 2 == 0 ? 0.5F : -0.5F;
  }
  for (const bool narrow_first : {true, false}) {
    std::vector<float> x;
    for (const double value : RandomRows(1, kDim, 8))
      x.push_back(static_cast<float>((x.size() < kGroup) == narrow_first ? value / 50 : value));
    std::vector<uint8_t> codes(kSize), unfed(kSize);
    EncodeAffineRowWithFeedback<float>(x, format, {}, factor, codes, scales_zeros);
    EncodeAffineRowWithFeedback<float>(x, format, {}, none, unfed, scales_zeros);
    const auto count = [&](const auto& what) {
      int64_t n = 0;
      for (size_t i = kGroup; i < kSize; ++i) n += what(i) ? 1 : 0;
      return n;
    };
    if (narrow_first) {
      EXPECT_LE(count([&](size_t i) { return codes[i] != unfed[i]; }), 2);
    } else {
      EXPECT_GE(count([&](size_t i) { return codes[i] % 3 == 0; }), 30);
      EXPECT_LE(count([&](size_t i) { return unfed[i] % 3 == 0; }), 20);
    }
  }
}

}  // namespace
}  // namespace oscar
