// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/model/scalar_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "capture/model/run/device.h"
#include "capture/model/run/weight_loader.h"

namespace oscar {
namespace {

std::minstd_rand& Random() {
  static std::minstd_rand random(11);
  return random;
}

float FromBFloat16(int bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
float FromHalf(int bits) {
  return std::ldexp(1.0F + static_cast<float>(bits & 1023) / 1024, (bits >> 10 & 31) - 15);
}

}  // namespace

Ints RandomInts(int64_t count, int low, int high) {
  std::uniform_int_distribution<int> pick(low, high);
  Ints values(static_cast<size_t>(count));
  for (int& value : values) value = pick(Random());
  return values;
}

Ints RandomOrder(int64_t count) {
  Ints order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), Random());
  return order;
}

float FromE4m3(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(1 + static_cast<float>(mantissa) / 8, exponent - 7);
  return (bits & 128) != 0 ? -magnitude : magnitude;
}
float FromE2m1(int bits) {
  constexpr std::array<float, 8> kValues = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (bits & 8) != 0 ? -kValues[static_cast<size_t>(bits & 7)]
                         : kValues[static_cast<size_t>(bits & 7)];
}

Floats AddScales(StoredWeights& stored, const std::string& name, std::vector<int64_t> shape,
                 DType dtype) {
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  Floats values;
  if (dtype == DType::kF32) {
    for (const int x : RandomInts(count, 1, 1 << 20))
      values.push_back(static_cast<float>(x) * 0x1.234p-18F);
    stored.Add(name, dtype, shape, values);
    return values;
  }
  const bool wide = dtype == DType::kBF16 || dtype == DType::kF16;
  const Ints bits = dtype == DType::kBF16     ? RandomInts(count, 0x3c00, 0x4100)
                    : dtype == DType::kF16    ? RandomInts(count, 0x1400, 0x4000)
                    : dtype == DType::kF8E4M3 ? RandomInts(count, 1, 0x7e)
                                              : RandomInts(count, 110, 135);  // E8M0
  for (const int b : bits) {
    values.push_back(dtype == DType::kBF16     ? FromBFloat16(b)
                     : dtype == DType::kF16    ? FromHalf(b)
                     : dtype == DType::kF8E4M3 ? FromE4m3(b)
                                               : std::ldexp(1.0F, b - 127));
  }
  if (wide) {
    stored.Add(name, dtype, std::move(shape), std::vector<uint16_t>(bits.begin(), bits.end()));
  } else {
    stored.Add(name, dtype, std::move(shape), std::vector<uint8_t>(bits.begin(), bits.end()));
  }
  return values;
}

void ExpectLoads(const StoredWeights& stored, const std::vector<int64_t>& shape,
                 const Floats& expected, const std::string& what) {
  const Checkpoint checkpoint = stored.Write("dequantize");
  std::vector<std::pair<at::Device, ReadMode>> ways = {{at::kCPU, ReadMode::kAuto}};
  if (const at::Device device = ParseDevice("auto"); !device.is_cpu()) {
    ways.emplace_back(device, ReadMode::kCached);
    ways.emplace_back(device, ReadMode::kDirect);
  }
  for (const auto& [device, read] : ways) {
    WeightLoader loader(checkpoint, {device, at::kFloat}, read);
    const at::Tensor whole = loader.Load(kWeight), part = loader.Load(kWeight, 1, shape[0] - 2);
    const at::Tensor half = loader.LoadAs(kWeight, at::kHalf);
    loader.Finish();
    ASSERT_EQ(whole.sizes().vec(), shape) << what;
    const at::Tensor x = whole.cpu();
    const auto* const found = x.const_data_ptr<float>();
    size_t different = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      different += std::bit_cast<uint32_t>(found[i]) != std::bit_cast<uint32_t>(expected[i]);
    EXPECT_EQ(different, 0u) << what << ": " << found[0] << " and " << expected[0];
    EXPECT_TRUE(part.equal(whole.narrow(0, 1, shape[0] - 2))) << what;
    EXPECT_TRUE(half.equal(whole.to(at::kHalf))) << what;
  }
}

Floats Dense(int64_t rows, int64_t columns,
             const std::function<float(size_t row, size_t column)>& value) {
  Floats dense;
  for (size_t n = 0; n < static_cast<size_t>(rows); ++n) {
    for (size_t k = 0; k < static_cast<size_t>(columns); ++k) dense.push_back(value(n, k));
  }
  return dense;
}

}  // namespace oscar
