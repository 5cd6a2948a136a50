// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/variance_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "tests/reference/scalar_kvarn.h"

namespace oscar {
namespace {

at::Tensor Tiles(int64_t rows, int64_t columns) {
  at::manual_seed(static_cast<uint64_t>(rows * columns));
  at::Tensor tiles = at::randn({9, rows, columns});
  tiles[1].fill_(0);
  tiles[2].fill_(-3);
  tiles[3].select(1, 1).mul_(1000);  // an outlier column
  tiles[4].select(0, 0).mul_(1e6);   // factors reach their clamps
  tiles[5].select(0, 1).fill_(0);    // a row of zeros
  tiles[6].mul_(1e-5);
  tiles[7].copy_(tiles[7].mul(2).round());  // ties
  tiles[8][0][0] = 6e4;
  return tiles;
}

void ExpectBytes(const std::vector<float>& expected, const at::Tensor& actual, const char* what) {
  const at::Tensor values = actual.contiguous();
  ASSERT_EQ(static_cast<int64_t>(expected.size()), values.numel());
  EXPECT_EQ(std::memcmp(expected.data(), values.const_data_ptr<float>(), expected.size() * 4), 0)
      << what;
}

void ExpectScalar(const at::Tensor& tiles, int bits, int iterations) {
  const TileShape shape = {tiles.size(1), tiles.size(2)};
  const VarianceFactorTensors factors = NormalizeVariance(tiles, iterations);
  const KvarnTileTensors encoded = EncodeKvarnTiles(tiles, bits, iterations);
  const at::Tensor y = DecodeKvarnTiles(encoded);
  for (int64_t i = 0; i < tiles.size(0); ++i) {
    SCOPED_TRACE(testing::Message() << "tile " << i << ", " << iterations << " iterations");
    const at::Tensor tile = tiles[i].contiguous();
    const std::span<const float> x(tile.const_data_ptr<float>(), static_cast<size_t>(tile.numel()));
    const VarianceFactors<float> expected = NormalizeVariance<float>(x, shape, iterations);
    ExpectBytes(expected.columns, factors.columns[i], "column factors");
    ExpectBytes(expected.rows, factors.rows[i], "row factors");
    ExpectBytes({expected.imbalance}, factors.imbalance[i], "imbalance");
    const KvarnTile<float> scalar = EncodeKvarnTile<float>(x, shape, bits, iterations);
    ExpectBytes({scalar.codes.begin(), scalar.codes.end()}, encoded.codes[i], "codes");
    std::vector<float> values(x.size());
    DecodeKvarnTile<float>(scalar, values);
    ExpectBytes(values, y[i], "values");
  }
}

TEST(VarianceTensor, EqualsTheScalarReferenceBitForBit) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{64, 128}, {128, 24}, {5, 7}}) {
    const at::Tensor tiles = Tiles(rows, columns);
    for (const int iterations : {0, 1, 8, 16}) {
      for (const int bits : {2, 4}) {
        ExpectScalar(tiles, bits, iterations);
      }
    }
  }
}

// Pins the codes of a tile after 0, 1 and 16 iterations.
TEST(VarianceTensor, Vectors) {
  const at::Tensor m =
      at::tensor({1, -2, 3, -4, 2, 1, -1, -2, -8, 4, 8, -4, 1, 1, -3, 5}, at::kFloat).view({4, 4});
  const auto codes = [&](int iterations) {
    return EncodeKvarnTiles(m, 2, iterations).codes.to(at::kLong).flatten();
  };
  EXPECT_TRUE(
      codes(0).equal(at::tensor({2, 1, 3, 0, 3, 2, 1, 0, 0, 2, 3, 1, 2, 2, 0, 3}, at::kLong)));
  EXPECT_TRUE(
      codes(1).equal(at::tensor({2, 0, 3, 0, 3, 3, 1, 0, 0, 3, 3, 1, 1, 2, 0, 3}, at::kLong)));
  EXPECT_TRUE(
      codes(16).equal(at::tensor({2, 0, 3, 0, 3, 3, 0, 0, 0, 3, 3, 1, 2, 2, 0, 3}, at::kLong)));
  EXPECT_NEAR(NormalizeVariance(m, 16).imbalance.item<float>(), 2.050824, 1e-5);
}

// In float64, square roots of different libraries differ in the last bit, so factors agree only to
// about that precision.
TEST(VarianceTensor, AgreesInFloat64) {
  at::manual_seed(4);
  const at::Tensor tile = at::randn({24, 40}, at::kDouble).mul(at::randn({24, 1}).exp());
  const std::span<const double> x(tile.const_data_ptr<double>(), static_cast<size_t>(tile.numel()));
  const VarianceFactors<double> expected = NormalizeVariance<double>(x, {24, 40}, 16);
  const VarianceFactorTensors factors = NormalizeVariance(tile, 16);
  EXPECT_TRUE(
      factors.columns.flatten().allclose(at::tensor(expected.columns, at::kDouble), 1e-12, 0));
  EXPECT_TRUE(factors.rows.flatten().allclose(at::tensor(expected.rows, at::kDouble), 1e-12, 0));
}

}  // namespace
}  // namespace oscar
