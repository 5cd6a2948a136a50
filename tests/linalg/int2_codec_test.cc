// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors by hand and by an independent implementation.
#include "tests/reference/int2_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/error.h"
#include "linalg/hadamard.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

struct EncodedRow {
  std::vector<uint8_t> packed, codes;
  std::vector<float> scales_zeros, decoded;
};

EncodedRow Encode(const std::vector<float>& x, const Int2Format& format) {
  EncodedRow e;
  e.packed.resize(static_cast<size_t>(Int2PackedBytesPerRow(format)));
  e.scales_zeros.resize(static_cast<size_t>(Int2MetadataValuesPerRow(format)));
  e.codes.resize(x.size());
  e.decoded.resize(x.size());
  EncodeRow(x, format, e.packed, e.scales_zeros);
  UnpackCodes(e.packed, format, e.codes);
  DecodeRow(e.packed, e.scales_zeros, format, e.decoded);
  return e;
}

EncodedRow Encode(const std::vector<float>& x) {
  const auto dim = static_cast<int64_t>(x.size());
  return Encode(x, {.head_dim = dim, .quant_group_size = dim});
}

using Codes = std::vector<uint8_t>;
using Floats = std::vector<float>;

TEST(Int2Codec, RoundsHalvesUp) {
  const EncodedRow e = Encode({-1, -0.5F, 0.5F, 2});
  EXPECT_EQ(e.scales_zeros, (Floats{1, 1}));
  EXPECT_EQ(e.codes, (Codes{0, 1, 2, 3}));
  EXPECT_EQ(e.decoded, (Floats{-1, 0, 1, 2}));
}

TEST(Int2Codec, ZeroPointIsAReal) {
  const EncodedRow e = Encode({0.5F, 1.5F, 2.5F, 3.5F});
  EXPECT_EQ(e.scales_zeros, (Floats{1, -0.5F}));
  EXPECT_EQ(e.codes, (Codes{0, 1, 2, 3}));
  EXPECT_EQ(e.decoded, (Floats{0.5F, 1.5F, 2.5F, 3.5F}));
}

TEST(Int2Codec, UnevenRange) {
  const EncodedRow e = Encode({-1, -0.2F, 0.7F, 2.5F});
  EXPECT_FLOAT_EQ(e.scales_zeros[0], 1.1666667F);
  EXPECT_FLOAT_EQ(e.scales_zeros[1], 0.8571429F);
  EXPECT_EQ(e.codes, (Codes{0, 1, 1, 3}));
  const Floats expected = {-1, 0.1666667F, 0.1666667F, 2.5F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(e.decoded[i], expected[i], 3e-7F);
}

TEST(Int2Codec, ConstantRowComesBackToOneUlp) {
  const EncodedRow e = Encode({3, 3, 3, 3});
  EXPECT_FLOAT_EQ(e.scales_zeros[0], 3.3333333e-9F);
  EXPECT_FLOAT_EQ(e.scales_zeros[1], -9e8F);
  EXPECT_EQ(e.codes, (Codes{0, 0, 0, 0}));
  EXPECT_NEAR(e.decoded[0], 3, 2.4e-7F);
}

// A tiny range on a large offset: the sum cancels to far outside [0, 3] and must not spill over.
TEST(Int2Codec, CodesAreClamped) {
  for (const float offset : {100.0F, 1e4F, -1e4F, 1e20F, -1e20F}) {
    const float next = std::nextafter(offset, std::numeric_limits<float>::infinity());
    const EncodedRow e = Encode({offset, next, offset, next});
    for (const uint8_t code : e.codes) EXPECT_LE(code, 3) << offset;
    for (const float y : e.decoded) EXPECT_NEAR(y / offset, 1, 1e-6F);
  }
}

TEST(Int2Codec, ClipExample) {
  const Floats x = {-4, -1, -0.5F, 0, 0.5F, 1, 1.5F, 3};
  Floats clipped = x;
  ClampRow<float>(clipped, ClipThresholdSort<float>(x, 0.75));
  const EncodedRow with_clip = Encode(clipped);
  EXPECT_EQ(with_clip.scales_zeros, (Floats{2, 1.5F}));
  EXPECT_EQ(with_clip.codes, (Codes{0, 1, 1, 2, 2, 2, 2, 3}));
  EXPECT_EQ(with_clip.decoded, (Floats{-3, -1, -1, 1, 1, 1, 1, 3}));
  const EncodedRow without = Encode(x);
  EXPECT_FLOAT_EQ(without.scales_zeros[0], 7.0F / 3);
  EXPECT_FLOAT_EQ(without.scales_zeros[1], 12.0F / 7);
  EXPECT_EQ(without.codes, (Codes{0, 1, 2, 2, 2, 2, 2, 3}));
}

TEST(Int2Codec, QuarteredPackingBytes) {
  const Int2Format format{.head_dim = 8, .quant_group_size = 8};
  const Codes codes = {0, 1, 2, 3, 3, 2, 1, 0};
  Codes packed(2);
  PackCodes(codes, format, packed);
  EXPECT_EQ(packed, (Codes{0x78, 0x2D}));
  Codes back(8);
  UnpackCodes(packed, format, back);
  EXPECT_EQ(back, codes);
}

// U = I, R = H_4 P_br, x = (1, 2, 3, 4).
TEST(Int2Codec, EndToEndOnFourCoordinates) {
  const Matrix x{{1, 2, 3, 4}};
  EXPECT_EQ(Matrix(x * BlockHadamard(4)), (Matrix{{5, -1, -2, 0}}));
  const Matrix r = BlockHadamard(4) * BitReversalMatrix(4);
  const Matrix y = x * r;
  EXPECT_EQ(y, (Matrix{{0, -1, -2, 5}}));
  const EncodedRow e = Encode({0, -1, -2, 5});
  EXPECT_FLOAT_EQ(e.scales_zeros[0], 7.0F / 3);
  EXPECT_FLOAT_EQ(e.scales_zeros[1], 6.0F / 7);
  EXPECT_EQ(e.codes, (Codes{1, 0, 0, 3}));
  EXPECT_EQ(e.packed, (Codes{0xC1}));
  const Matrix decoded = Eigen::Map<const Eigen::RowVectorXf>(e.decoded.data(), 4).cast<double>();
  EXPECT_LE((decoded - Matrix{{1.0 / 3, -2, -2, 5}}).cwiseAbs().maxCoeff(), 1e-6);
  const Matrix back = decoded * r.transpose();
  EXPECT_LE((back - Matrix{{2.0 / 3, 7.0 / 3, 7.0 / 3, 14.0 / 3}}).cwiseAbs().maxCoeff(), 1e-6);
}

TEST(Int2Codec, GroupsAreIndependentNeighboursAndMetadataIsInterleaved) {
  const Floats x = {0, 1, 2, 3, 100, 200, 300, 400};
  const EncodedRow e = Encode(x, {.head_dim = 8, .quant_group_size = 4});
  ASSERT_EQ(e.scales_zeros.size(), 4U);
  EXPECT_EQ(e.scales_zeros[0], 1);
  EXPECT_EQ(e.scales_zeros[1], 0);
  EXPECT_EQ(e.scales_zeros[2], 100);
  EXPECT_EQ(e.scales_zeros[3], -1);
  EXPECT_EQ(e.decoded, x);
}

TEST(Int2Codec, BFloat16MetadataRoundsWhatIsStoredAndNotTheCodes) {
  const std::vector<double> row = RandomRows(1, 128, 5);
  const Floats x(row.begin(), row.end());
  const EncodedRow full = Encode(x, {.head_dim = 128, .quant_group_size = 32});
  const EncodedRow half =
      Encode(x, {.head_dim = 128, .quant_group_size = 32, .metadata = MetadataType::kBFloat16});
  EXPECT_EQ(full.packed, half.packed);
  bool changed = false;
  for (size_t i = 0; i < full.scales_zeros.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(half.scales_zeros[i]) & 0xFFFFU, 0U);
    EXPECT_NEAR(half.scales_zeros[i] / full.scales_zeros[i], 1, 1.0 / 256);
    changed |= half.scales_zeros[i] != full.scales_zeros[i];
  }
  EXPECT_TRUE(changed);
  // 1.00390625 = 1 + 2^-8 lies halfway between two bfloat16 numbers and goes to the even one, 1;
  // 1 + 3 * 2^-8 goes up to 1 + 2^-6.
  const Int2Format format{
      .head_dim = 4, .quant_group_size = 4, .metadata = MetadataType::kBFloat16};
  EXPECT_EQ(Encode({0, 0, 0, 3 * 1.00390625F}, format).scales_zeros[0], 1);
  EXPECT_EQ(Encode({0, 0, 0, 3 * 1.01171875F}, format).scales_zeros[0], 1.015625F);
}

TEST(Int2Codec, QuantizeDequantizeIsClampEncodeDecode) {
  for (const auto metadata : {MetadataType::kFloat32, MetadataType::kBFloat16}) {
    for (const ClipMethod method : {ClipMethod::kSort, ClipMethod::kBisect}) {
      const Int2Format format{.head_dim = 128, .quant_group_size = 64, .metadata = metadata};
      const std::vector<double> row = RandomRows(1, 128, 6);
      const Floats x(row.begin(), row.end());
      Floats clipped = x;
      ClampRow<float>(clipped, ClipThreshold<float>(x, 0.92, method));
      Floats y(128);
      const float threshold = QuantizeDequantizeRow<float>(x, format, {0.92, method}, y);
      EXPECT_EQ(threshold, ClipThreshold<float>(x, 0.92, method));
      EXPECT_EQ(y, Encode(clipped, format).decoded);
      Floats in_place = x;
      QuantizeDequantizeRow<float>(in_place, format, {0.92, method}, in_place);
      EXPECT_EQ(in_place, y);
    }
  }
}

TEST(Int2Codec, RowsThatCannotBeRepresentedAreErrors) {
  EXPECT_THROW(Encode({1, 2, NAN, 4}), NumericalError);
  EXPECT_THROW(Encode({1, 2, INFINITY, 4}), NumericalError);
  EXPECT_THROW(Encode({3e38F, -3e38F, 0, 0}), NumericalError);
  EXPECT_THROW(Encode({3e38F, 3e38F, 3e38F, 3e38F}), NumericalError);
  std::vector<double> y(4);
  EXPECT_THROW(QuantizeDequantizeRow<double>(std::vector<double>{1, NAN, 2, 3},
                                             {.head_dim = 4, .quant_group_size = 4}, {0}, y),
               NumericalError);
}

// Expected errors on i.i.d. N(0, 1) rows of 128 (Monte Carlo).
struct GaussianCase {
  int64_t quant_group_size;
  double ratio, mse, mean_scale, mean_threshold;  // 0: not listed
};

TEST(Int2Codec, MeanSquaredErrorOnGaussianRows) {
  const int64_t rows = 20000;
  const std::vector<double> x = RandomRows(rows, 128, 7);
  for (const GaussianCase& c :
       {GaussianCase{128, 0, 0.2501, 1.729, 0}, GaussianCase{128, 0.96, 0.1561, 1.344, 2.018},
        GaussianCase{128, 0.92, 0.1271, 1.157, 1.735}, GaussianCase{64, 0, 0.2023, 0, 0},
        GaussianCase{64, 0.96, 0.1502, 0, 0}, GaussianCase{64, 0.92, 0.1265, 0, 0}}) {
    const Int2Format format{.head_dim = 128, .quant_group_size = c.quant_group_size};
    double squared_error = 0;
    double threshold_sum = 0;
    double scale_sum = 0;
    Codes packed(32);
    Floats scales_zeros(static_cast<size_t>(Int2MetadataValuesPerRow(format)));
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = x.begin() + row * 128;
      const Floats values(first, first + 128);
      Floats clipped = values;
      const float threshold = ClipThresholdSort<float>(values, c.ratio);
      ClampRow<float>(clipped, threshold);
      EncodeRow(clipped, format, packed, scales_zeros);
      Floats y(128);
      DecodeRow(packed, scales_zeros, format, y);
      for (size_t i = 0; i < 128; ++i) squared_error += std::pow(double{y[i]} - values[i], 2);
      threshold_sum += threshold;
      scale_sum += scales_zeros[0];
    }
    const auto n = static_cast<double>(rows);
    EXPECT_NEAR(squared_error / (n * 128), c.mse, 8e-4) << c.quant_group_size << ", " << c.ratio;
    if (c.mean_scale > 0) {
      EXPECT_NEAR(scale_sum / n, c.mean_scale, 3e-3) << c.ratio;
    }
    if (c.mean_threshold > 0) {
      EXPECT_NEAR(threshold_sum / n, c.mean_threshold, 3e-3) << c.ratio;
    }
  }
}

}  // namespace
}  // namespace oscar
