// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the NVFP4 tensor codec with its scalar reference, and checks where its methods take
// their scales from.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "export/simulate/codecs/float4_tensor.h"
#include "tests/export/simulate/per_token_rows.h"
#include "tests/reference/scalar_float4.h"

namespace oscar {
namespace {

// Returns rows with ties and signed zeros, and of magnitudes from too small to too large for E4M3
// scales.
at::Tensor FloatRows() {
  at::manual_seed(4);
  at::Tensor rows = at::randn({64, 128}, at::kFloat);
  rows.mul_(at::linspace(-14, 16, 64).exp2_().unsqueeze(1));
  rows[0].zero_();
  rows[1].fill_(-0.F);
  rows[2].copy_(at::arange(128).remainder(25).sub(12).mul(0.5));  // ties at scale 1
  rows[3].copy_(at::arange(128).remainder(49).sub(24).mul(0.25));
  rows[4].fill_(1e-30F);
  rows[5][17] = 3e38F;
  return rows;
}

void ExpectScalar(const at::Tensor& rows, const at::Tensor& actual, float scale) {
  std::vector<float> expected(kNvfp4Values);
  const at::Tensor x = rows.contiguous(), y = actual.contiguous();
  for (int64_t i = 0; i < x.numel(); i += kNvfp4Values) {
    Nvfp4RoundTrip(std::span(x.const_data_ptr<float>() + i, kNvfp4Values), scale, expected);
    ASSERT_EQ(
        std::memcmp(expected.data(), y.const_data_ptr<float>() + i, kNvfp4Values * sizeof(float)),
        0)
        << "values from " << i << ", scale " << scale;
  }
}

TEST(Nvfp4, TensorsEqualTheScalarCodec) {
  const at::Tensor rows = FloatRows();
  for (const float scale : {1.F, 0.37F, 1e-3F, 250.F, 2688.F})
    ExpectScalar(rows, Nvfp4RoundTrip(rows, scale), scale);
}

// Ties of E2M1 round to the even code, and values that are too large saturate.
TEST(Nvfp4, RoundsAsTheFormatSays) {
  at::Tensor x = at::zeros({1, 16}), y = at::zeros({1, 16});
  const float in[] = {6, .25F, .75F, 1.25F, 1.75F, 2.5F, 3.5F, 5, -5, -.25F, .26F, 4.9F},
              out[] = {6, 0, 1, 1, 2, 2, 4, 4, -4, 0, .5F, 4};
  for (int64_t i = 0; i < 12; ++i) {
    x[0][i] = in[i];
    y[0][i] = out[i];
  }
  EXPECT_TRUE(Nvfp4RoundTrip(x, 1).equal(y));
  const at::Tensor large = at::full({1, 16}, 1e6F);
  EXPECT_TRUE(Nvfp4RoundTrip(large, 1).eq(6 * 448).all().item<bool>());
  EXPECT_TRUE(Nvfp4RoundTrip(large, Nvfp4Scale(1e6F)).allclose(large, 1e-6));
  EXPECT_TRUE(Nvfp4RoundTrip(at::full({1, 16}, 0x1p-10F), 1).eq(0).all().item<bool>());
}

TEST(Nvfp4, MethodsTakeScalesFromCalibrationRows) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  float k_largest = 0, v_largest = 0;
  for (const at::Tensor& k : rows.rows().k)
    k_largest = std::max(k_largest, k.abs().max().item<float>());
  for (const at::Tensor& v : rows.rows().v)
    v_largest = std::max(v_largest, v.abs().max().item<float>());
  const CacheSides one = Stored(rows, "nvfp4", x), own = Stored(rows, "nvfp4_calibrated", x),
                   mixed_own = Stored(rows, "fp8_k_nvfp4_v_calibrated", x);
  ExpectScalar(x.k, one.k, 1);
  ExpectScalar(x.v, one.v, 1);
  ExpectScalar(x.k, own.k, k_largest / (6 * 448));
  ExpectScalar(x.v, own.v, v_largest / (6 * 448));
  EXPECT_TRUE(mixed_own.v.equal(own.v));
  EXPECT_TRUE(mixed_own.k.equal(Stored(rows, "fp8_e4m3_calibrated", x).k));
}

}  // namespace
}  // namespace oscar
