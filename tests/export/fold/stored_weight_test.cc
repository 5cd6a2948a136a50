// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/fold/stored_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "linalg/base/error.h"

namespace oscar {
namespace {

template <typename T>
TensorView View(DType dtype, const std::vector<T>& values, std::vector<int64_t> shape) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

TEST(StoredWeight, EveryHalfAndBf16ComesBack) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const uint32_t infinity = dtype == DType::kF16 ? 0x7C00 : 0x7F80;
    std::vector<uint16_t> all;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      if ((bits & infinity) != infinity) all.push_back(static_cast<uint16_t>(bits));
    }
    const auto size = static_cast<int64_t>(all.size());
    const std::vector<std::byte> stored =
        StoredWeight(ReadWeight(View(dtype, all, {size / 4, 4}), "w"), dtype, "w");
    ASSERT_EQ(stored.size(), 2 * all.size());
    EXPECT_EQ(std::memcmp(stored.data(), all.data(), stored.size()), 0) << DTypeName(dtype);
  }
}

TEST(StoredWeight, KnownNumbers) {
  const std::vector<uint16_t> halves = {0x3C00, 0xC000, 0x0001, 0x0400, 0x7BFF};
  const WeightMatrix h = ReadWeight(View(DType::kF16, halves, {5}), "w");
  EXPECT_EQ(Vector(h), (Vector{{1, -2, 0x1p-24, 0x1p-14, 65504}}));
  const std::vector<uint16_t> broken = {0x7C00, 0xFC00, 0x7E00};  // inf, -inf, NaN
  const WeightMatrix b = ReadWeight(View(DType::kF16, broken, {3}), "w");
  EXPECT_EQ(b(0, 0), INFINITY);
  EXPECT_EQ(b(1, 0), -INFINITY);
  EXPECT_TRUE(std::isnan(b(2, 0)));
  const std::vector<float> floats = {1, -0.1F, 0x1p-140F, 3e38F, 0, 7};
  const WeightMatrix f = ReadWeight(View(DType::kF32, floats, {2, 3}), "w");
  EXPECT_EQ(f(1, 2), 7);
  EXPECT_EQ(f(0, 1), static_cast<double>(-0.1F));
  const std::vector<std::byte> stored = StoredWeight(f, DType::kF32, "w");
  EXPECT_EQ(std::memcmp(stored.data(), floats.data(), stored.size()), 0);
}

TEST(StoredWeight, RoundsToNearestEven) {
  const auto bits = [](double x, DType dtype) {
    const std::vector<std::byte> stored = StoredWeight(WeightMatrix::Constant(1, 1, x), dtype, "w");
    uint16_t result;
    std::memcpy(&result, stored.data(), sizeof(result));
    return result;
  };
  EXPECT_EQ(bits(1 + 0x1p-8, DType::kBF16), 0x3F80);
  EXPECT_EQ(bits(1 + 3 * 0x1p-8, DType::kBF16), 0x3F82);
  EXPECT_EQ(bits(1 + 0x1p-11, DType::kF16), 0x3C00);
  EXPECT_EQ(bits(1 + 3 * 0x1p-11, DType::kF16), 0x3C02);
  EXPECT_EQ(bits(-1.5 * 0x1p-24, DType::kF16), 0x8002);
}

TEST(StoredWeight, RefusesWhatDoesNotFit) {
  EXPECT_THROW(StoredWeight(WeightMatrix::Constant(1, 1, 70000), DType::kF16, "w"), NumericalError);
  EXPECT_THROW(StoredWeight(WeightMatrix::Constant(1, 1, NAN), DType::kBF16, "w"), NumericalError);
  EXPECT_THROW(StoredWeight(WeightMatrix::Constant(1, 1, 1e39), DType::kF32, "w"), NumericalError);
  const std::vector<int8_t> bytes = {1, 2};
  EXPECT_THROW(ReadWeight(View(DType::kI8, bytes, {2}), "w"), InputError);
  const std::vector<float> cube(8);
  EXPECT_THROW(ReadWeight(View(DType::kF32, cube, {2, 2, 2}), "w"), InputError);
}

}  // namespace
}  // namespace oscar
