// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the OCP float8 formats with published codes, and 16-bit types against the compiler's
// conversions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "linalg/stored_float.h"
#include "tests/linalg/random_values.h"
#include "tests/reference/scalar_float8.h"

namespace oscar {
namespace {

constexpr Float8Type kE4M3 = Float8Type::kE4M3, kE5M2 = Float8Type::kE5M2;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Float8, PublishedCodes) {
  const auto e4m3 = [](int code) { return DecodeFloat8(static_cast<uint8_t>(code), kE4M3); };
  EXPECT_EQ(e4m3(0x00), 0);
  EXPECT_EQ(e4m3(0x01), 0x1p-9F);
  EXPECT_EQ(e4m3(0x07), 0.013671875F);
  EXPECT_EQ(e4m3(0x08), 0x1p-6F);
  EXPECT_EQ(e4m3(0x38), 1);
  EXPECT_EQ(e4m3(0x39), 1.125F);
  EXPECT_EQ(e4m3(0x7E), 448);
  EXPECT_TRUE(std::isnan(e4m3(0x7F)));
  EXPECT_EQ(e4m3(0xB8), -1);
  const auto e5m2 = [](int code) { return DecodeFloat8(static_cast<uint8_t>(code), kE5M2); };
  EXPECT_EQ(e5m2(0x01), 0x1p-16F);
  EXPECT_EQ(e5m2(0x04), 0x1p-14F);
  EXPECT_EQ(e5m2(0x3C), 1);
  EXPECT_EQ(e5m2(0x7B), 57344);
  EXPECT_EQ(e5m2(0x7C), kInfinity);
  EXPECT_TRUE(std::isnan(e5m2(0x7D)) && std::isnan(e5m2(0x7F)));
}

TEST(Float8, PublishedRoundings) {
  EXPECT_EQ(EncodeFloat8(0.1F, kE4M3), 0x1D);
  EXPECT_EQ(DecodeFloat8(0x1D, kE4M3), 0.1015625F);
  EXPECT_EQ(EncodeFloat8(0.1F, kE5M2), 0x2E);
  EXPECT_EQ(DecodeFloat8(0x2E, kE5M2), 0.09375F);
  EXPECT_EQ(Float8RoundTrip(17, 1, kE4M3), 16);
  EXPECT_EQ(Float8RoundTrip(19, 1, kE4M3), 20);
  EXPECT_EQ(Float8RoundTrip(1e6F, 1, kE4M3), 448);
  EXPECT_EQ(Float8RoundTrip(-kInfinity, 1, kE5M2), -57344);
  EXPECT_EQ(EncodeFloat8(-0.F, kE4M3), 0x80);
  EXPECT_EQ(EncodeFloat8(-kInfinity - -kInfinity, kE4M3) & 0x7F, 0x7F);
}

TEST(Float8, CalibratedScalesMapTheLargestOntoTheLargest) {
  EXPECT_EQ(Float8Scale(896, kE4M3), 2);
  EXPECT_EQ(Float8Scale(57344, kE5M2), 1);
  EXPECT_EQ(Float8Scale(0, kE4M3), 1);
  EXPECT_EQ(Float8RoundTrip(896, Float8Scale(896, kE4M3), kE4M3), 896);
  EXPECT_EQ(Float8RoundTrip(900, Float8Scale(896, kE4M3), kE4M3), 896);
}

// Compares with the compiler's own conversion, for float16 numbers of all magnitudes and their
// midpoints.
TEST(StoredFloat, HalvesAreThoseOfIeee754) {
  for (const double exponent : RandomRows(1, 20000, 3, 10)) {
    const auto x = static_cast<float>(std::exp2(exponent)) * 0x1.234p0F;
    if (x > kMaxFloat16) continue;
    for (const float value : {x, -x, static_cast<float>(static_cast<_Float16>(x)) * (1 + 0x1p-11F)})
      EXPECT_EQ(RoundToFloat16(value), static_cast<float>(static_cast<_Float16>(value))) << value;
  }
  EXPECT_EQ(RoundToFloat16(1e6F), 65504);
  EXPECT_EQ(RoundToFloat16(-1e6F), -65504);
  EXPECT_EQ(RoundToFloat16(0x1p-25F), 0);  // a tie: to even
  EXPECT_EQ(RoundToFloat16(0x1.8p-24F), 0x1p-23F);
  EXPECT_TRUE(std::signbit(RoundToFloat16(-0.F)));
  EXPECT_EQ(RoundToBFloat16(1 + 0x1p-8F), 1);
  EXPECT_EQ(RoundToBFloat16(1 + 0x1.8p-7F), 1 + 0x1p-6F);
  EXPECT_EQ(RoundToBFloat16(std::numeric_limits<float>::max()), kMaxBFloat16);
  EXPECT_EQ(NearestBFloat16(-std::numeric_limits<float>::max()),
            -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace oscar
