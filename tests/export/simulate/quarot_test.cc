// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the methods of QuaRot and SAW with scalar codecs on whole numbers, whose Hadamard
// transforms are exact.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/rotation.h"
#include "tests/export/simulate/cache_loop.h"
#include "tests/export/simulate/per_token_rows.h"
#include "tests/reference/scalar_affine_families.h"

namespace oscar {
namespace {

// Compares each method with the scalar codec on rows that are rotated by hand. The Hadamard
// transform of 64 whole numbers is exact.
TEST(QuarotMethods, EqualTheScalarCodecBitForBit) {
  RowContext rows(kSquareRows);
  const at::Tensor x = WholeRows(50, 2, 64, 1);
  const at::Tensor h = RotationTensor({HadamardRotation(64).matrix()})[0];
  const at::Tensor rotated = at::matmul(x, h);
  const struct {
    std::string_view name;
    AffineRule rule;
    bool all_heads;
  } kCases[] = {
      {"quarot_int2", {.family = AffineFamily::kIntegerZero}, false},
      {"quarot_int4", {.family = AffineFamily::kIntegerZero, .bits = 4}, false},
      {"quarot_int2_per_token", {.family = AffineFamily::kIntegerZero, .include_zero = true}, true},
      {"quarot_int4_kernel",
       {.family = AffineFamily::kMinOffset, .bits = 4, .min_range = 1e-5F},
       false}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    for (const bool clip : {false, true}) {
      AffineRule rule = c.rule;
      rule.metadata = StoredFloat::kFloat16;
      if (clip) rule.clip_ratio = 0.95F;
      const at::Tensor y = Stored(rows, c.name, {x, x}, {.clip = clip}).k;
      const int64_t width = c.all_heads ? 128 : 64;
      const at::Tensor groups = rotated.reshape({-1, width}).contiguous();
      at::Tensor expected = at::empty_like(groups);
      std::vector<uint8_t> codes(static_cast<size_t>(width));
      std::vector<float> numbers(2);
      for (int64_t i = 0; i < groups.size(0); ++i) {
        const std::span<const float> row(groups[i].const_data_ptr<float>(), codes.size());
        EncodeAffineFamily<float>(row, rule, width, codes, numbers);
        DecodeAffineFamily<float>(codes, numbers, rule, width,
                                  {expected[i].mutable_data_ptr<float>(), codes.size()});
      }
      const at::Tensor back =
          at::matmul(expected.view(x.sizes()).permute({1, 0, 2}).contiguous(), h.t());
      EXPECT_TRUE(at::equal(y, back.permute({1, 0, 2}))) << "clip " << clip;
    }
  }
}

TEST(SawMethods, BlocksOfOneAreNaiveAndOfAllAreQuarots) {
  RowContext rows(kSquareRows);
  const at::Tensor x = WholeRows(50, 2, 64, 2);
  // SAW does not rotate values, and these whole numbers are exact in bf16.
  EXPECT_TRUE(at::equal(Stored(rows, "saw_int4", {x, x}).v, Stored(rows, "naive_int4", {x, x}).v));
  // These numbers are so small that the rotated rows, multiples of 1 / 8, are exact in bf16 too.
  const at::Tensor small = x.remainder(3);
  EXPECT_TRUE(at::equal(Stored(rows, "saw_int4_head", {small, small}).k,
                        Stored(rows, "int4_hadamard", {small, small}).k));
  EXPECT_FALSE(at::equal(Stored(rows, "saw_int4", {small, small}).k,
                         Stored(rows, "saw_int4_head", {small, small}).k));
}

// A large channel affects only its own block of 16 channels.
TEST(SawMethods, BlocksDoNotMix) {
  RowContext rows(kSquareRows);
  at::Tensor x = at::zeros({3, 2, 64});
  x.select(2, 20).fill_(8);
  x.select(2, 5).fill_(1);
  const at::Tensor y = Stored(rows, "saw_int4", {x, x}).k;
  // A block of zeros is read back as a constant, which the transform moves to its first channel.
  EXPECT_EQ(y.slice(2, 33, 48).abs().max().item<float>(), 0);
  EXPECT_EQ(y.slice(2, 49, 64).abs().max().item<float>(), 0);
  EXPECT_GT(y.slice(2, 16, 32).abs().max().item<float>(), 7);
}

TEST(SawMethods, RotatedRowsAreRoundedToBf16) {
  RowContext rows(kSquareRows);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor x = at::randn({20, 2, 64}, dtype);
    for (const auto& [name, bits] : {std::pair{"saw_int4", 4}, std::pair{"saw_int8", 8}}) {
      const at::Tensor y = Stored(rows, name, {x, x}).v;
      EXPECT_TRUE(
          at::equal(y, AffineFamilyRoundTrip(x.to(at::kBFloat16).to(dtype), {.bits = bits}, 64)));
      EXPECT_FALSE(at::equal(y, AffineFamilyRoundTrip(x, {.bits = bits}, 64)));
    }
  }
}

}  // namespace
}  // namespace oscar
