// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/affine_family_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "tests/reference/scalar_affine_families.h"
#include "tests/reference/tree_sum.h"

namespace oscar {
namespace {

// Returns rows of every kind on which two implementations have differed.
at::Tensor Rows(int64_t dim, at::ScalarType dtype) {
  at::manual_seed(static_cast<uint64_t>(dim));
  at::Tensor rows = at::randn({48, dim}, at::kFloat);
  rows[1].fill_(3);
  rows[2].fill_(0);
  rows[3].fill_(-0.0);
  rows[4].mul_(1e-20);
  rows[5].mul_(1e-41);  // subnormal
  rows[6][0] = 5e4;
  rows[7].copy_(at::arange(dim).to(at::kFloat).div(2));  // ties
  rows[8].copy_(at::arange(dim).remainder(2).to(at::kFloat).mul(-0.0));
  rows[9].abs_();
  rows[10].abs_().neg_();
  rows[11].mul_(1e-6).add_(7);
  rows[12].mul_(3e-5);
  rows[13].fill_(-1e-41);
  rows[14].fill_(1e-45);
  rows[14][0] = 0;
  rows.slice(0, 20, 48).copy_(rows.slice(0, 20, 48).mul(4).round());
  return rows.to(dtype);
}

template <typename T>
void ExpectScalar(const at::Tensor& rows, const AffineRule& rule, int64_t group) {
  const at::Tensor y = AffineFamilyRoundTrip(rows, rule, group);
  const AffineFamilyCodes encoded =
      EncodeAffineFamily(rows.reshape({rows.size(0), -1, group}), rule);
  const at::Tensor codes = encoded.codes.to(at::kByte).reshape(rows.sizes()).contiguous();
  const auto dim = static_cast<size_t>(rows.size(1));
  for (int64_t row = 0; row < rows.size(0); ++row) {
    std::vector<uint8_t> expected_codes(dim);
    std::vector<T> expected(dim), numbers(2 * dim / static_cast<size_t>(group));
    const std::span<const T> x(rows[row].const_data_ptr<T>(), dim);
    EncodeAffineFamily<T>(x, rule, group, expected_codes, numbers);
    DecodeAffineFamily<T>(expected_codes, numbers, rule, group, expected);
    SCOPED_TRACE(testing::Message()
                 << "family " << static_cast<int>(rule.family) << " bits " << rule.bits << " group "
                 << group << " row " << row << " of " << sizeof(T) << " bytes");
    ASSERT_EQ(std::memcmp(expected_codes.data(), codes[row].const_data_ptr<uint8_t>(), dim), 0);
    ASSERT_EQ(std::memcmp(expected.data(), y[row].const_data_ptr<T>(), dim * sizeof(T)), 0);
  }
}

TEST(AffineFamilyTensor, EqualsTheScalarCodecBitForBit) {
  std::vector<AffineRule> rules = {
      {.family = AffineFamily::kRealZero},
      {.family = AffineFamily::kMinOffset},
      {.family = AffineFamily::kMinOffset, .min_range = 1e-4F},
      {.family = AffineFamily::kMinOffset, .min_scale = 1e-6F, .rounding = CodeRounding::kHalfUp},
      {.family = AffineFamily::kMinOffset, .min_scale = 1e-10F},
      {.family = AffineFamily::kIntegerZero},
      {.family = AffineFamily::kIntegerZero, .clip_ratio = 0.95F, .include_zero = true},
      {.family = AffineFamily::kIntegerZero, .divisor = 8},
      {.family = AffineFamily::kFusedZero}};
  for (const int64_t dim : {32, 96}) {
    const at::Tensor rows = Rows(dim, at::kFloat), rows64 = Rows(dim, at::kDouble);
    for (AffineRule rule : rules) {
      for (const int bits : {2, 3, 4, 8}) {
        rule.bits = bits;
        for (const StoredFloat type :
             {StoredFloat::kFloat32, StoredFloat::kFloat16, StoredFloat::kBFloat16}) {
          rule.metadata = type;
          for (const int64_t group : {dim, dim / 4}) {
            ExpectScalar<float>(rows, rule, group);
            ExpectScalar<double>(rows64, rule, group);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// Pins codes and values of short rows.
TEST(AffineFamilyTensor, Vectors) {
  const auto expect = [](AffineFamily family, std::vector<double> x, std::vector<double> codes,
                         std::vector<double> y) {
    const AffineRule rule = {.family = family};
    const AffineFamilyCodes encoded = EncodeAffineFamily(at::tensor(x, at::kDouble), rule);
    EXPECT_TRUE(encoded.codes.equal(at::tensor(codes, at::kDouble))) << encoded.codes;
    EXPECT_TRUE(DecodeAffineFamily(encoded, rule).allclose(at::tensor(y, at::kDouble), 1e-6, 1e-6));
  };
  expect(AffineFamily::kRealZero, {-1, -.5, .5, 2}, {0, 1, 2, 3}, {-1, 0, 1, 2});
  expect(AffineFamily::kMinOffset, {-1, -.5, .5, 2}, {0, 0, 2, 3}, {-1, -1, 1, 2});
  expect(AffineFamily::kMinOffset, {.5, 1.5, 2.5, 3.5}, {0, 1, 2, 3}, {.5, 1.5, 2.5, 3.5});
  expect(AffineFamily::kFusedZero, {.5, 1.5, 2.5, 3.5}, {0, 2, 2, 3}, {0, 2, 2, 3});
  expect(AffineFamily::kFusedZero, {-1, -.2, .7, 2.5}, {0, 1, 2, 3},
         {-1.1666667, 0, 1.1666667, 2.3333333});
  expect(AffineFamily::kMinOffset, {3, 3, 3, 3}, {0, 0, 0, 0}, {3, 3, 3, 3});
  expect(AffineFamily::kFusedZero, {0, 0, 0, 0}, {2, 2, 2, 2}, {0, 0, 0, 0});
}

TEST(AffineFamilyTensor, TreeSumsAreTheScalarOnes) {
  for (const int64_t count : {1, 2, 3, 7, 96, 128, 257}) {
    at::manual_seed(static_cast<uint64_t>(count));
    const at::Tensor x = at::randn({5, count, 3}).mul(at::randn({5, count, 3}).exp());
    const at::Tensor sums = TreeSum(x, 1);
    ASSERT_EQ(sums.sizes(), (at::IntArrayRef{5, 1, 3}));
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const at::Tensor column = x[i].select(1, j).contiguous();
        std::vector<float> values(column.const_data_ptr<float>(),
                                  column.const_data_ptr<float>() + count);
        EXPECT_EQ(TreeSum<float>(values), sums[i][0][j].item<float>()) << count;
      }
    }
  }
}

}  // namespace
}  // namespace oscar
