// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests TurboQuant as a method: its published errors, and vLLM's presets.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/export/simulate/per_token_rows.h"
#include "tests/reference/scalar_affine_families.h"

namespace oscar {
namespace {

// Rows of 128 values in uniformly random directions have the published errors. With an outlier
// channel, all rows have nearly the same direction and share one random rotation, so the error may
// differ by up to 30 %.
TEST(TurboQuantMethods, ErrorsAreTheSpheres) {
  RowContext rows(kWideRows);
  at::manual_seed(5);
  const at::Tensor x = at::randn({450, 2, 128}), v = at::randn({450, 2, 64});
  at::Tensor outlier = x.clone();
  outlier.select(2, 7).mul_(40);
  const auto error_of = [&](const std::string& name, const at::Tensor& k) {
    const at::Tensor y = Stored(rows, name, {k, v}).k;
    return ((y - k).square().sum(-1) / k.square().sum(-1)).mean().item<double>();
  };
  const auto error = [&](const std::string& name) { return error_of(name, x); };
  const double mse[] = {0.360889, 0.116000, 0.033966, 0.009315};
  EXPECT_NEAR(error_of("turboquant_mse_2", outlier), mse[1], 0.3 * mse[1]);
  for (int bits = 1; bits <= 4; ++bits) {
    EXPECT_NEAR(error("turboquant_mse_" + std::to_string(bits)), mse[bits - 1],
                0.02 * mse[bits - 1]);
  }
  // A residual r is read as sqrt(pi / 2) |r| / d S^T sign(S r). The error of that is |r|^2 pi / 2,
  // where |r|^2 is the error at 3 bits.
  const double product = mse[2] * std::numbers::pi / 2;
  EXPECT_NEAR(error("turboquant_prod_4"), product, 0.05 * product);
}

// vLLM uses Gaussian levels, which at 128 dimensions give the same error D as the sphere's levels.
// With corrected norms, the error is 2 - 2 sqrt(1 - D).
TEST(TurboQuantMethods, ErrorsOfVllmsKeys) {
  RowContext rows(kWideRows);
  at::manual_seed(6);
  const at::Tensor k = at::randn({450, 2, 128}), v = at::randn({450, 2, 64});
  const auto expect = [&](const char* name, double error) {
    EXPECT_NEAR(RelativeError(Stored(rows, name, {k, v}).k, k), error, 0.03 * error) << name;
  };
  expect("turboquant_k3v3", 0.033966);
  expect("turboquant_3bit_nc", 2 - 2 * std::sqrt(1 - 0.033966));
  expect("turboquant_k3v4_nc", 2 - 2 * std::sqrt(1 - 0.033966));
  expect("turboquant_4bit_nc", 2 - 2 * std::sqrt(1 - 0.009315));
}

// Values are equal bit for bit: minimum and scale in fp16, halves rounded up, no rotation.
TEST(TurboQuantMethods, VllmsValuesEqualTheScalarCodec) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  for (const auto& [name, bits] : {std::pair{"turboquant_k3v3", 3}, {"turboquant_k8v4", 4}}) {
    const AffineRule rule{.family = AffineFamily::kMinOffset,
                          .bits = bits,
                          .min_scale = 1e-8F,
                          .rounding = CodeRounding::kHalfUp,
                          .metadata = StoredFloat::kFloat16};
    x.v[0].copy_(at::arange(64).mul(0.5).clamp_max((1 << bits) - 1));  // scale 1: ties
    const at::Tensor y = Stored(rows, name, x).v;
    std::vector<uint8_t> codes(64);
    std::vector<float> numbers(2), expected(64);
    for (int64_t token = 0; token < y.size(0); ++token) {
      const std::span<const float> row(x.v[token][1].const_data_ptr<float>(), 64);
      EncodeAffineFamily<float>(row, rule, 64, codes, numbers);
      DecodeAffineFamily<float>(codes, numbers, rule, 64, expected);
      ASSERT_TRUE(at::equal(y[token][1], at::tensor(expected))) << name << ", token " << token;
    }
  }
}

TEST(TurboQuantMethods, PresetsKeepNormsWhereTheySay) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  const auto norms = [&](const char* name) {
    return (Stored(rows, name, x).k.norm(2, -1) / x.k.norm(2, -1) - 1).abs().max().item<double>();
  };
  EXPECT_LT(norms("turboquant_3bit_nc"), 6e-4);  // norms are fp16
  EXPECT_GT(norms("turboquant_k3v3"), 5e-3);
  EXPECT_TRUE(at::equal(Stored(rows, "turboquant_k8v4", x).k, Stored(rows, "fp8_e4m3", x).k));
  EXPECT_TRUE(
      at::equal(Stored(rows, "turboquant_k3v3", x).v, Stored(rows, "turboquant_3bit_nc", x).v));
  EXPECT_TRUE(
      at::equal(Stored(rows, "turboquant_k8v4", x).v, Stored(rows, "turboquant_4bit_nc", x).v));
  EXPECT_FALSE(at::equal(Stored(rows, "turboquant_mse_3", x).k,
                         CacheMethodNamed("turboquant_mse_3")
                             .make(RowContext(kWideRows, {.seed = 1}).context(), 0, {})
                             .store(x)
                             .quantized.k));
}

}  // namespace
}  // namespace oscar
