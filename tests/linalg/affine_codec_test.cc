// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/affine_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "linalg/affine_metadata.h"
#include "linalg/base/error.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

using Codes = std::vector<uint8_t>;
using Floats = std::vector<float>;

struct Encoded {
  Codes codes;
  Floats scales_zeros;
};
Encoded Encode(const Floats& x, const AffineFormat& format) {
  const auto groups = x.size() / static_cast<size_t>(format.quant_group_size);
  Encoded e{Codes(x.size()), Floats(2 * groups)};
  EncodeAffineRow(x, format, e.codes, e.scales_zeros);
  return e;
}

TEST(AffineCodec, EveryCodeOfItsRange) {
  for (const int bits : {1, 2, 3, 4, 8}) {
    Floats x(size_t{1} << bits);
    std::iota(x.begin(), x.end(), -3.0F);
    const Encoded e = Encode(x, {bits, static_cast<int64_t>(x.size()), MetadataType::kFloat32});
    EXPECT_EQ(e.scales_zeros, (Floats{1, 3})) << bits;
    Codes all(x.size());
    std::iota(all.begin(), all.end(), uint8_t{0});
    EXPECT_EQ(e.codes, all) << bits;
    Floats y(x.size());
    DecodeAffineRow(e.codes, e.scales_zeros, {bits, static_cast<int64_t>(x.size())}, y);
    EXPECT_EQ(y, x) << bits;
  }
}

TEST(AffineCodec, HalvesRoundUp) {
  const Encoded e = Encode({0, 7, 0.5F, 1.5F, 2.49F, 6.5F}, {3, 6, MetadataType::kFloat32});
  EXPECT_EQ(e.codes, (Codes{0, 7, 1, 2, 2, 7}));
}

TEST(AffineCodec, EveryGroupHasItsOwnScale) {
  const Encoded e = Encode({0, 15, 3, 0, -30, 0, -6, -4}, {4, 4, MetadataType::kFloat32});
  EXPECT_EQ(e.scales_zeros, (Floats{1, -0.0F, 2, 15}));
  EXPECT_EQ(e.codes, (Codes{0, 15, 3, 0, 0, 15, 12, 13}));
}

// With a tiny range and a large offset, x / scale + zero cancels to a value far outside [0, 3],
// which must be clamped.
TEST(AffineCodec, CodesAreClamped) {
  for (const float offset : {100.0F, 1e4F, -1e4F, 1e20F, -1e20F}) {
    const float next = std::nextafter(offset, std::numeric_limits<float>::infinity());
    const AffineFormat format{.bits = 2, .quant_group_size = 4};
    const Encoded e = Encode({offset, next, offset, next}, format);
    Floats y(4);
    DecodeAffineRow(e.codes, e.scales_zeros, format, y);
    for (const uint8_t code : e.codes) EXPECT_LE(code, 3) << offset;
    for (const float value : y) EXPECT_NEAR(value / offset, 1, 1e-6F);
  }
}

TEST(AffineCodec, BFloat16MetadataRoundsWhatIsStoredAndNotTheCodes) {
  const Floats x = RandomRow(128, 5);
  const Encoded full = Encode(x, {2, 32}), half = Encode(x, {2, 32, MetadataType::kBFloat16});
  EXPECT_EQ(full.codes, half.codes);
  EXPECT_NE(full.scales_zeros, half.scales_zeros);
  for (const float value : half.scales_zeros)
    EXPECT_EQ(std::bit_cast<uint32_t>(value) & 0xFFFFU, 0U);
  // 1.00390625 = 1 + 2^-8 lies halfway between two bfloat16 numbers and goes to the even one, 1;
  // 1 + 3 * 2^-8 goes up to 1 + 2^-6.
  const AffineFormat format{2, 4, MetadataType::kBFloat16};
  EXPECT_EQ(Encode({0, 0, 0, 3 * 1.00390625F}, format).scales_zeros[0], 1);
  EXPECT_EQ(Encode({0, 0, 0, 3 * 1.01171875F}, format).scales_zeros[0], 1.015625F);
}

// Expected errors for rows of 128 i.i.d. N(0, 1) values, from a Monte Carlo simulation.
struct GaussianCase {
  int64_t quant_group_size;
  double ratio, mse, mean_scale, mean_threshold;  // 0: not checked
};

TEST(AffineCodec, MeanSquaredErrorOfTwoBitsOnGaussianRows) {
  constexpr int64_t kRows = 20000;
  const std::vector<double> rows = RandomRows(kRows, 128, 7);
  const Floats x(rows.begin(), rows.end());
  for (const GaussianCase& c :
       {GaussianCase{128, 0, 0.2501, 1.729, 0}, GaussianCase{128, 0.96, 0.1561, 1.344, 2.018},
        GaussianCase{128, 0.92, 0.1271, 1.157, 1.735}, GaussianCase{64, 0, 0.2023, 0, 0},
        GaussianCase{64, 0.96, 0.1502, 0, 0}, GaussianCase{64, 0.92, 0.1265, 0, 0}}) {
    const AffineFormat format{.bits = 2, .quant_group_size = c.quant_group_size};
    double squared_error = 0, threshold_sum = 0, scale_sum = 0;
    Codes codes(128);
    Floats scales_zeros(static_cast<size_t>(256 / c.quant_group_size)), y(128);
    for (size_t first = 0; first < x.size(); first += 128) {
      const std::span<const float> values(x.data() + first, 128);
      threshold_sum +=
          ClipAndEncodeAffineRow(values, format, {c.ratio, ClipMethod::kSort}, codes, scales_zeros);
      DecodeAffineRow(codes, scales_zeros, format, y);
      for (size_t i = 0; i < 128; ++i) squared_error += std::pow(double{y[i]} - values[i], 2);
      scale_sum += scales_zeros[0];
    }
    EXPECT_NEAR(squared_error / (kRows * 128), c.mse, 8e-4)
        << c.quant_group_size << ", " << c.ratio;
    if (c.mean_scale > 0) {
      EXPECT_NEAR(scale_sum / kRows, c.mean_scale, 3e-3) << c.ratio;
    }
    if (c.mean_threshold > 0) {
      EXPECT_NEAR(threshold_sum / kRows, c.mean_threshold, 3e-3) << c.ratio;
    }
  }
}

TEST(AffineCodec, ClippedRowsAreWhatAReaderGets) {
  for (const int bits : {2, 3, 4}) {
    for (const ClipMethod method : {ClipMethod::kSort, ClipMethod::kBisect}) {
      for (const MetadataType type :
           {MetadataType::kFloat32, MetadataType::kBFloat16, MetadataType::kByte}) {
        const AffineFormat format{bits, 64, type};
        const RowClip clip{0.92, method};
        const Floats x = RandomRow(128, static_cast<uint64_t>(bits));
        Codes codes(128);
        Floats scales_zeros(4), decoded(128), expected(128);
        const float threshold = ClipAndEncodeAffineRow(x, format, clip, codes, scales_zeros);
        DecodeAffineRow(codes, scales_zeros, format, decoded);
        EXPECT_EQ(threshold, QuantizeDequantizeAffineRow<float>(x, format, clip, expected));
        EXPECT_EQ(decoded, expected);
        EXPECT_EQ(threshold, ClipThreshold<float>(x, 0.92, method));
      }
    }
  }
}

TEST(AffineCodec, AClippedValueIsCodedAsTheThreshold) {
  Floats two(64), ramp(64);
  for (size_t i = 0; i < two.size(); ++i) {
    two[i] = i % 5 == 0 ? 1.0F : 1.0F + 1.0F / 128;
    ramp[i] = 1e-10F * static_cast<float>(i);
  }
  for (const Floats& x : {two, ramp}) {
    for (const double ratio : {0.03, 0.5, 0.86}) {
      for (const AffineFormat& format :
           {AffineFormat{2, 32}, {4, 32}, {8, 32}, {8, 32, {}, ScaleFit::kUnbiased}}) {
        const RowClip clip{ratio, ClipMethod::kSort};
        Floats clamped = x, read(x.size()), decoded(x.size());
        ClampRow<float>(clamped, ClipThreshold<float>(x, ratio, clip.method));
        const Encoded expected = Encode(clamped, format);
        Encoded e{Codes(x.size()), Floats(expected.scales_zeros.size())};
        ClipAndEncodeAffineRow(x, format, clip, e.codes, e.scales_zeros);
        EXPECT_EQ(e.codes, expected.codes) << ratio << " " << format.bits;
        EXPECT_EQ(e.scales_zeros, expected.scales_zeros);
        QuantizeDequantizeAffineRow<float>(x, format, clip, read);
        DecodeAffineRow(e.codes, e.scales_zeros, format, decoded);
        EXPECT_EQ(read, decoded);
      }
    }
  }
}

TEST(AffineCodec, BytesHoldScaleAndZero) {
  std::vector<float> scales;
  for (uint32_t s = 1; s < 0xF8; ++s) {
    const uint32_t exponent = s >> 3, fraction = s & 7;
    scales.push_back(exponent == 0 ? std::ldexp(static_cast<float>(fraction), -17)
                                   : std::ldexp(1 + static_cast<float>(fraction) / 8,
                                                static_cast<int>(exponent) - 15));
  }
  EXPECT_EQ(scales.front(), kMinByteScale);
  EXPECT_EQ(scales.back(), kMaxByteScale);
  for (const float scale : scales) EXPECT_EQ(ByteScale(scale), scale);
  for (size_t i = 0; i + 1 < scales.size(); ++i) {
    // The byte of scales[i] is i + 1. A tie goes to the even byte.
    const float middle = (scales[i] + scales[i + 1]) / 2;
    EXPECT_EQ(ByteScale(middle), scales[i % 2 == 1 ? i : i + 1]) << i;
    EXPECT_EQ(ByteScale(std::nextafter(middle, 0.0F)), scales[i]);
    EXPECT_EQ(ByteScale(std::nextafter(middle, 1e9F)), scales[i + 1]);
  }
  EXPECT_EQ(ByteScale(1e-20F), kMinByteScale);
  EXPECT_EQ(ByteScale(1e20F), kMaxByteScale);
  for (const int bits : {1, 2, 3, 4}) {
    const Encoded e = Encode(RandomRow(128, 7), {bits, 16, MetadataType::kByte});
    for (size_t g = 0; g < e.scales_zeros.size(); g += 2) {
      EXPECT_NE(std::ranges::find(scales, e.scales_zeros[g]), scales.end());
      const float steps = (e.scales_zeros[g + 1] - static_cast<float>(MaxCode(bits)) / 2) *
                          static_cast<float>(ScaleSteps(bits));
      EXPECT_EQ(steps, std::nearbyint(steps));
      EXPECT_LE(std::abs(steps), kMaxScaleSteps);
    }
  }
}

// The middle code at 2 bits is 1.5, and a step is 1 / 32 of a code.
TEST(AffineCodec, AByteZeroIsWithin127StepsOfTheMiddle) {
  const auto zero = [](double value) {
    return StoredAffine<double>({1, value}, MetadataType::kByte, 2).zero;
  };
  EXPECT_EQ(zero(1.5), 1.5);
  EXPECT_EQ(zero(0.04), 0.03125);
  EXPECT_EQ(zero(-100), 1.5 - 127 / 32.0);
  EXPECT_EQ(zero(100), 1.5 + 127 / 32.0);
}

TEST(AffineCodec, AGroupFarFromZeroStaysThere) {
  Floats x(16, 100), y(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] += 0.01F * static_cast<float>(i);
  QuantizeDequantizeAffineRow<float>(x, {2, 16, MetadataType::kByte}, {}, y);
  for (const float value : y) EXPECT_NEAR(value, 100, 7);
}

TEST(AffineCodec, RefusesRowsThatDoNotFit) {
  const float max = std::numeric_limits<float>::max();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(Encode({0, nan}, {4, 2}), NumericalError);
  EXPECT_THROW(Encode({0, INFINITY}, {2, 2}), NumericalError);
  EXPECT_THROW(Encode({max, max}, {2, 2}), NumericalError);  // the zero overflows
  EXPECT_THROW(Encode({-max, max}, {4, 2}), NumericalError);
  // This scale is finite in float32, but rounds to infinity in bfloat16.
  const Floats wide = {0, max};
  EXPECT_NO_THROW(Encode(wide, {1, 2, MetadataType::kFloat32}));
  EXPECT_THROW(Encode(wide, {1, 2, MetadataType::kBFloat16}), NumericalError);
}

}  // namespace
}  // namespace oscar
