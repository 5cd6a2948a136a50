// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares variants of OSCAR (bits, clip thresholds, metadata, levels) with the method they vary or
// with scalar codecs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "export/simulate/codecs/lloyd_max_tensor.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/runtime_rows.h"
#include "linalg/affine_codec.h"
#include "linalg/rotation.h"
#include "tests/export/simulate/cache_loop.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

TEST(OscarVariants, TwoBitsOfTheTableAreOscar) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  for (const bool clip : {false, true}) {
    const ArmOptions options{.clip = clip};
    const CacheSides oscar = Stored(rows, "oscar_per_head", x, options);
    const CacheSides k3v2 = Stored(rows, "oscar_k3v2", x, options);
    EXPECT_TRUE(at::equal(k3v2.v, oscar.v));
    EXPECT_LT(RelativeError(k3v2.k, x.k), 0.5 * RelativeError(oscar.k, x.k));
    const CacheSides k4v4 = Stored(rows, "oscar_k4v4", x, options);
    EXPECT_LT(RelativeError(k4v4.v, x.v), 0.3 * RelativeError(oscar.v, x.v));
  }
}

// Bisection ends near the order statistic below the sorted threshold, so it clips more. Without
// clipping, nothing differs.
TEST(OscarVariants, BisectionDiffersWhereItClips) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  EXPECT_TRUE(at::equal(Stored(rows, "oscar_bisect", x).k, Stored(rows, "oscar_per_head", x).k));
  const ArmOptions clip{.clip = true};
  const at::Tensor bisected = Stored(rows, "oscar_bisect", x, clip).k;
  EXPECT_FALSE(at::equal(bisected, Stored(rows, "oscar_per_head", x, clip).k));
  EXPECT_LT(RelativeError(bisected, x.k), 0.3);
}

TEST(WriteAndRead, BisectedRowsEqualTheScalarCodecs) {
  const at::Tensor rows = at::randn({1, 80, 128});
  const at::Tensor y = WriteAndRead({.clip = ClipVariant::kBisect}, rows, 0.92, 128);
  std::vector<float> expected(128);
  for (int64_t i = 0; i < 80; ++i) {
    QuantizeDequantizeAffineRow<float>({rows[0][i].const_data_ptr<float>(), 128}, {},
                                       {0.92, ClipMethod::kBisect}, expected);
    ASSERT_TRUE(at::equal(y[0][i], at::tensor(expected))) << i;
  }
}

TEST(OscarVariants, Bf16MetadataEqualsTheScalarCodec) {
  RowContext rows(kSquareRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  const at::Tensor y = Stored(rows, "oscar_bf16_metadata", x).k;
  const at::Tensor rotation = RotationTensor(rows.context().Stored(0).k);
  const at::Tensor rotated = at::matmul(x.k.permute({1, 0, 2}).contiguous(), rotation);
  at::Tensor expected = at::empty_like(rotated);
  for (int64_t head = 0; head < rotated.size(0); ++head) {
    for (int64_t t = 0; t < rotated.size(1); ++t) {
      QuantizeDequantizeAffineRow<float>({rotated[head][t].const_data_ptr<float>(), 64},
                                         {2, 64, MetadataType::kBFloat16}, {},
                                         {expected[head][t].mutable_data_ptr<float>(), 64});
    }
  }
  const at::Tensor back = at::matmul(expected, rotation.transpose(1, 2)).permute({1, 0, 2});
  EXPECT_TRUE(at::equal(y, back));
}

TEST(LloydMaxMethods, QuantizeRotatedRows) {
  RowContext rows(kSquareRows);
  const at::Tensor x = WholeRows(50, 2, 64, 3);
  const at::Tensor h = RotationTensor({HadamardRotation(64).matrix()})[0];
  const at::Tensor y = Stored(rows, "hadamard_lloyd_max", {x, x}).k;
  const at::Tensor rotated = at::matmul(x.permute({1, 0, 2}).contiguous(), h);
  const at::Tensor read = LloydMaxRoundTrip(rotated, LloydMaxForm::kExact);
  EXPECT_TRUE(at::equal(y, at::matmul(read, h.t()).permute({1, 0, 2})));
  const CacheSides wide = RowsOf(rows, at::kFloat);
  EXPECT_LT(RelativeError(Stored(rows, "oscar_lloyd_max", wide).k, wide.k),
            RelativeError(Stored(rows, "oscar_lloyd_max_llamacpp", wide).k, wide.k));
}

}  // namespace
}  // namespace oscar
