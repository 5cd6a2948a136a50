// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests KVarN (arXiv 2606.03458) on worked tiles in float32 and float64.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/linalg/random_values.h"
#include "tests/reference/scalar_kvarn.h"

namespace oscar {
namespace {

using Codes = std::vector<uint8_t>;
using Doubles = std::vector<double>;
constexpr TileShape kFour = {4, 4};
constexpr double kTolerance = 1e-5;  // absolute; values are below 10

template <typename T>
class VarianceNormalization : public ::testing::Test {
 protected:
  const std::vector<T> m_ = {1, -2, 3, -4, 2, 1, -1, -2, -8, 4, 8, -4, 1, 1, -3, 5};

  KvarnTile<T> Encode(int iterations) const {
    return EncodeKvarnTile<T>(m_, kFour, 2, iterations, StoredFloat::kFloat32);
  }
  double MeanSquaredError(const KvarnTile<T>& tile) const {
    std::vector<T> y(m_.size());
    DecodeKvarnTile<T>(tile, y);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += std::pow(static_cast<double>(y[i] - m_[i]), 2);
    return sum / static_cast<double>(y.size());
  }
  double Imbalance(int iterations) const {
    return static_cast<double>(NormalizeVariance<T>(m_, kFour, iterations).imbalance);
  }
  static void ExpectNear(const std::vector<T>& values, const Doubles& expected) {
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(static_cast<double>(values[i]), expected[i], kTolerance) << i;
  }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VarianceNormalization, Types);

// Without iterations nothing is normalized, and each row is quantized by family A2.
TYPED_TEST(VarianceNormalization, VectorOfNoIteration) {
  const auto tile = this->Encode(0);
  EXPECT_EQ(tile.codes, (Codes{2, 1, 3, 0, 3, 2, 1, 0, 0, 2, 3, 1, 2, 2, 0, 3}));
  this->ExpectNear(tile.scales, {2.333333, 1.333333, 5.333333, 2.666667});
  this->ExpectNear(tile.zeros, {-4, -2, -8, -3});
  this->ExpectNear(tile.columns, {1, 1, 1, 1});
  EXPECT_NEAR(this->Imbalance(0), 5.982563, kTolerance);
  EXPECT_NEAR(this->MeanSquaredError(tile), 0.472222, kTolerance);
}

TYPED_TEST(VarianceNormalization, VectorOfOneIteration) {
  const auto tile = this->Encode(1);
  EXPECT_EQ(tile.codes, (Codes{2, 0, 3, 0, 3, 3, 1, 0, 0, 3, 3, 1, 1, 2, 0, 3}));
  this->ExpectNear(tile.scales, {0.518029, 0.298189, 1.117654, 0.596057});
  this->ExpectNear(tile.zeros, {-0.936329, -0.468165, -1.705606, -0.617758});
  this->ExpectNear(tile.columns, {4.690416, 2.449490, 4.856267, 4.272002});
  this->ExpectNear(NormalizeVariance<TypeParam>(this->m_, kFour, 1).rows,
                   {0.765506, 0.740818, 1.738233, 0.740818});
  EXPECT_NEAR(this->Imbalance(1), 3.417541, kTolerance);
  EXPECT_NEAR(this->MeanSquaredError(tile), 0.249846, kTolerance);
}

TYPED_TEST(VarianceNormalization, VectorOfSixteenIterations) {
  const auto tile = this->Encode(16);
  EXPECT_EQ(tile.codes, (Codes{2, 0, 3, 0, 3, 3, 0, 0, 0, 3, 3, 1, 2, 2, 0, 3}));
  this->ExpectNear(tile.columns, {2.232290, 1.503846, 2.885776, 3.932308});
  this->ExpectNear(NormalizeVariance<TypeParam>(this->m_, kFour, 16).rows,
                   {1.140191, 0.740818, 3.080335, 0.981185});
  const Doubles imbalances = {3.417541, 2.618178, 2.415955, 2.307015, 2.258706};
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(this->Imbalance(i + 1), imbalances[static_cast<size_t>(i)], kTolerance) << i;
  EXPECT_NEAR(this->Imbalance(16), 2.050824, kTolerance);
  EXPECT_NEAR(this->MeanSquaredError(tile), 0.328288, kTolerance);
}

TEST(KvarnTile, MetadataIsHalfPrecision) {
  const std::vector<double> normal = RandomRows(8, 16, 1);
  const std::vector<float> tile(normal.begin(), normal.end());
  const auto exact = EncodeKvarnTile<float>(tile, {8, 16}, 4, 16, StoredFloat::kFloat32);
  const auto stored = EncodeKvarnTile<float>(tile, {8, 16}, 4, 16);
  EXPECT_EQ(exact.codes, stored.codes);
  EXPECT_NE(exact.scales, stored.scales);
  for (size_t i = 0; i < exact.columns.size(); ++i)
    EXPECT_EQ(stored.columns[i], RoundToFloat16(exact.columns[i]));
  for (size_t i = 0; i < exact.scales.size(); ++i) {
    EXPECT_EQ(stored.scales[i], RoundToFloat16(exact.scales[i]));
    EXPECT_EQ(stored.zeros[i], RoundToFloat16(exact.zeros[i]));
  }
}

// Codes take 8192 bytes at 4 bits and 4096 at 2 bits; scales, zeros and column factors take 768.
TEST(KvarnTile, Bytes) {
  EXPECT_EQ(KvarnTileBytes({128, 128}, 4), 8192 + 768);
  EXPECT_EQ(KvarnTileBytes({128, 128}, 2), 4096 + 768);
}

}  // namespace
}  // namespace oscar
