// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests worked examples and the properties that each quantizer family promises.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "linalg/affine_codec.h"
#include "tests/linalg/random_values.h"
#include "tests/reference/scalar_affine_families.h"

namespace oscar {
namespace {

using Codes = std::vector<uint8_t>;
using Floats = std::vector<float>;

constexpr AffineFamily kA1 = AffineFamily::kRealZero, kA2 = AffineFamily::kMinOffset,
                       kA3 = AffineFamily::kIntegerZero, kA4 = AffineFamily::kFusedZero;

struct Coded {
  Codes codes;
  Floats numbers, values;
};

Coded RoundTrip(const Floats& x, const AffineRule& rule, int64_t group = 0) {
  if (group == 0) group = static_cast<int64_t>(x.size());
  Coded coded{Codes(x.size()), Floats(2 * x.size() / static_cast<size_t>(group)), Floats(x.size())};
  EncodeAffineFamily<float>(x, rule, group, coded.codes, coded.numbers);
  DecodeAffineFamily<float>(coded.codes, coded.numbers, rule, group, coded.values);
  return coded;
}

void Expect(const Floats& x, const AffineRule& rule, double scale, double offset,
            const Codes& codes, const std::vector<double>& values) {
  const Coded coded = RoundTrip(x, rule);
  EXPECT_NEAR(coded.numbers[0], scale, 1e-7 * std::abs(scale));
  EXPECT_NEAR(coded.numbers[1], offset, 1e-7 * (1 + std::abs(offset)));
  EXPECT_EQ(coded.codes, codes);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(coded.values[i], values[i], 5e-7);
}

TEST(AffineFamilies, PublishedTable) {
  const Floats first = {-1, -0.5F, 0.5F, 2};
  Expect(first, {kA1}, 1, 1, {0, 1, 2, 3}, {-1, 0, 1, 2});
  Expect(first, {kA2}, 1, -1, {0, 0, 2, 3}, {-1, -1, 1, 2});
  const Floats halves = {0.5F, 1.5F, 2.5F, 3.5F};
  Expect(halves, {kA1}, 1, -0.5, {0, 1, 2, 3}, {0.5, 1.5, 2.5, 3.5});
  Expect(halves, {kA2}, 1, 0.5, {0, 1, 2, 3}, {0.5, 1.5, 2.5, 3.5});
  Expect(halves, {kA3}, 1, 0, {0, 2, 2, 3}, {0, 2, 2, 3});
  Expect(halves, {kA4}, 1, 0, {0, 2, 2, 3}, {0, 2, 2, 3});
  Expect(halves, {.family = kA3, .include_zero = true}, 7.0 / 6, 0, {0, 1, 2, 3},
         {0, 7.0 / 6, 14.0 / 6, 3.5});
  const Floats third = {-1, -0.2F, 0.7F, 2.5F};
  Expect(third, {kA1}, 7.0 / 6, 6.0 / 7, {0, 1, 1, 3}, {-1, 1.0 / 6, 1.0 / 6, 2.5});
  Expect(third, {kA3}, 7.0 / 6, 1, {0, 1, 2, 3}, {-7.0 / 6, 0, 7.0 / 6, 14.0 / 6});
  Expect(third, {kA4}, 7.0 / 6, -7.0 / 6, {0, 1, 2, 3}, {-7.0 / 6, 0, 7.0 / 6, 14.0 / 6});
  Expect({3, 3, 3, 3}, {kA1}, 1e-8 / 3, -9e8, {0, 0, 0, 0}, {3, 3, 3, 3});
}

TEST(AffineFamilies, HalvesOfTheMinOffsetRoundAsAsked) {
  AffineRule rule{kA2};
  EXPECT_EQ(RoundTrip({0, 0.5F, 1.5F, 3}, rule).codes, (Codes{0, 0, 2, 3}));
  rule.rounding = CodeRounding::kHalfUp;
  EXPECT_EQ(RoundTrip({0, 0.5F, 1.5F, 3}, rule).codes, (Codes{0, 1, 2, 3}));
}

// The clip ratio of QuaRot and RotateKV scales both ends of the range. Values beyond it get the
// first or last code.
TEST(AffineFamilies, ClipRatioMultipliesBothEnds) {
  const Coded coded = RoundTrip({-2, 0, 1, 4}, {.family = kA3, .clip_ratio = 0.5F});
  EXPECT_EQ(coded.numbers, (Floats{1, 1}));
  EXPECT_EQ(coded.codes, (Codes{0, 1, 2, 3}));
  EXPECT_EQ(coded.values, (Floats{-1, 0, 1, 2}));
}

// With RotateKV's divisor, 3-bit codes reach 7, but the scale divides the range into 8 steps.
TEST(AffineFamilies, DivisorOfTheScale) {
  EXPECT_EQ(RoundTrip({-8, 0, 7, 8}, {.family = kA3, .bits = 3, .divisor = 8}).values,
            (Floats{-8, 0, 6, 6}));
}

TEST(AffineFamilies, GroupsWithoutARangeAreExact) {
  for (const AffineFamily family : {kA2, kA3, kA4}) {
    for (const float constant : {3.F, -7.5F, 1e-42F, -1e30F}) {
      const Coded coded = RoundTrip({constant, constant}, {family});
      EXPECT_EQ(coded.values, (Floats{constant, constant}));
      EXPECT_EQ(coded.codes, (Codes{0, 0}));
    }
    EXPECT_EQ(RoundTrip({0, -0.F, 0}, {family}).values, (Floats{0, 0, 0}));
  }
  EXPECT_EQ(RoundTrip({0, 0}, {kA3}).numbers, (Floats{2.F / 3, 2}));  // the range is [-1, 1]
}

TEST(AffineFamilies, FloorsOfRangeAndScale) {
  AffineRule rule{.family = kA2, .bits = 4, .min_range = 1.5F};
  EXPECT_EQ(RoundTrip({1, 1.25F}, rule).numbers, (Floats{0.1F, 1}));
  rule.min_range = 0;
  rule.min_scale = 0.5F;
  EXPECT_EQ(RoundTrip({1, 1.25F}, rule).numbers, (Floats{0.5F, 1}));
}

TEST(AffineFamilies, MetadataRoundsValuesOnly) {
  const std::vector<double> row = RandomRows(1, 128, 7, 3);
  const Floats x(row.begin(), row.end());
  for (const AffineFamily family : {kA1, kA2, kA3, kA4}) {
    AffineRule rule{family, 3};
    const Coded full = RoundTrip(x, rule, 32);
    for (const StoredFloat type : {StoredFloat::kBFloat16, StoredFloat::kFloat16}) {
      rule.metadata = type;
      const Coded stored = RoundTrip(x, rule, 32);
      EXPECT_EQ(stored.codes, full.codes);
      EXPECT_NE(stored.values, full.values);
      for (size_t i = 0; i < full.numbers.size(); ++i)
        EXPECT_EQ(stored.numbers[i], RoundTo(full.numbers[i], type));
    }
  }
}

// Scales and offsets that a method stores in 16 bits are rounded in float64 comparisons too.
TEST(AffineFamilies, MetadataOfFloat64RoundsAsWell) {
  const std::vector<double> x = RandomRows(1, 128, 7, 3);
  for (const AffineFamily family : {kA1, kA2, kA3, kA4}) {
    for (const StoredFloat type : {StoredFloat::kBFloat16, StoredFloat::kFloat16}) {
      std::vector<uint8_t> codes(128);
      std::vector<double> numbers(8), full(8), values(128), expected(128);
      AffineRule rule{family, 3};
      EncodeAffineFamily<double>(x, rule, 32, codes, full);
      rule.metadata = type;
      EncodeAffineFamily<double>(x, rule, 32, codes, numbers);
      EXPECT_NE(numbers, full);
      for (size_t i = 0; i < full.size(); ++i)
        EXPECT_EQ(numbers[i], static_cast<double>(RoundTo(static_cast<float>(full[i]), type)));
      DecodeAffineFamily<double>(codes, numbers, rule, 32, values);
      if (family != kA1 || type != StoredFloat::kBFloat16) continue;
      QuantizeDequantizeAffineRow<double>(x, {3, 32, MetadataType::kBFloat16}, {}, expected);
      EXPECT_EQ(values, expected);
    }
  }
}

TEST(AffineFamilies, RealZeroIsTheAffineCodec) {
  const std::vector<double> row = RandomRows(1, 128, 8);
  const Floats x(row.begin(), row.end());
  for (const int bits : {2, 3, 4}) {
    Floats expected(128);
    QuantizeDequantizeAffineRow<float>(x, {bits, 64, MetadataType::kBFloat16}, {}, expected);
    const AffineRule rule{.bits = bits, .metadata = StoredFloat::kBFloat16};
    EXPECT_EQ(RoundTrip(x, rule, 64).values, expected);
  }
}

}  // namespace
}  // namespace oscar
