// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests TurboQuant's inner products (arXiv 2504.19874) and special rows; lloyd_max_test.cc tests
// its tables. Sizes and seeds are fixed, so the results are the same in every run.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "tests/linalg/random_values.h"
#include "tests/reference/scalar_sphere.h"

namespace oscar {
namespace {

using Doubles = std::vector<double>;
using Codes = std::vector<uint8_t>;

double Dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Doubles Scaled(Doubles x, double factor) {
  for (double& value : x) value *= factor;
  return x;
}

// Returns a uniform direction: the distribution of any fixed vector after a Haar rotation.
Doubles UnitVector(int64_t dim, uint64_t seed) {
  const Doubles x = RandomRows(1, dim, seed);
  return Scaled(x, 1 / std::sqrt(Dot(x, x)));
}

Doubles RoundTrip(const Doubles& x, const SphereRule& rule) {
  Codes codes(x.size());
  Doubles y(x.size());
  const double norm = EncodeSphere<double>(x, rule, codes);
  DecodeSphere<double>(codes, norm, rule, y);
  return y;
}

struct Estimate {
  double mean, variance;
};

Estimate Inner(const Doubles& y, const Doubles& u, const SphereRule& rule, int draws) {
  const size_t dim = u.size();
  Codes codes(dim), signs(dim);
  Doubles decoded(dim);
  double sum = 0, squares = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const auto d = static_cast<int64_t>(dim);
    const Doubles s = RandomRows(d, d, static_cast<uint64_t>(draw) + 1000);
    const auto norms = EncodeProduct<double>(u, rule, s, codes, signs);
    DecodeProduct<double>(codes, signs, norms, rule, s, decoded);
    const double inner = Dot(y, decoded);
    sum += inner;
    squares += inner * inner;
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean};
}

// Expects an estimate of <y, u> without bias and with variance ((pi / 2) gamma^2 |y|^2 - <y, r>^2)
// / d, where r = u - u^ and gamma = |r|.
void ExpectUnbiased(int64_t dim, int draws, double tolerance) {
  for (int bits = 1; bits <= 4; ++bits) {
    const SphereRule rule{SphereLevels(bits - 1, dim)};
    const Doubles u = UnitVector(dim, 11), y = UnitVector(dim, 12);
    const Doubles u_hat = RoundTrip(u, rule);  // u has norm 1, so this is u^ itself
    Doubles r = u;
    for (size_t i = 0; i < r.size(); ++i) r[i] -= u_hat[i];
    const Estimate estimate = Inner(y, u, rule, draws);
    const double predicted =
        (std::numbers::pi / 2 * Dot(r, r) - Dot(y, r) * Dot(y, r)) / static_cast<double>(dim);
    EXPECT_NEAR(estimate.mean, Dot(y, u), 4 * std::sqrt(predicted / draws)) << bits;
    EXPECT_NEAR(estimate.variance / predicted, 1, tolerance) << bits;
  }
}
TEST(SphereCodec, ProductsAreUnbiasedAndVaryAsPredicted) {
  ExpectUnbiased(8, 30000, 0.05);
  ExpectUnbiased(16, 20000, 0.05);
}

// If S is the identity, the stored signs are those of the residual; 0 counts as positive.
TEST(SphereCodec, SignsOfTheResidual) {
  Doubles identity(16, 0);
  for (size_t i = 0; i < 4; ++i) identity[5 * i] = 1;
  const SphereRule rule{SphereLevels(0, 4), false, StoredFloat::kFloat32};
  Codes codes(4), signs(4);
  const auto norms =
      EncodeProduct<double>(Doubles{300, -1e-3, 0, 1e-3}, rule, identity, codes, signs);
  EXPECT_EQ(signs, (Codes{1, 0, 1, 1}));
  EXPECT_NEAR(norms.residual, 1, 1e-12);
  Doubles y(4);
  DecodeProduct<double>(codes, signs, norms, rule, identity, y);
  const double step = 300 * std::sqrt(std::numbers::pi / 2) / 4;
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], signs[i] != 0 ? step : -step, 1e-6);
}

TEST(SphereCodec, ScalesAndSpecialRows) {
  const SphereRule rule{SphereLevels(3, 64), true};
  const Doubles x = Scaled(UnitVector(64, 3), 7), y = RoundTrip(x, rule);
  const Doubles large = RoundTrip(Scaled(x, 8), rule);  // float16 norms scale exactly
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(large[i], y[i] * 8);
  EXPECT_EQ(RoundTrip(Doubles(64, 0), rule), Doubles(64, 0));
  std::vector<float> huge(64, 1e-3F), decoded(64);
  huge[5] = 1e30F;
  EXPECT_EQ(RowNorm<float>(huge), 1e30F);
  Codes codes(64);
  // The stored norm saturates at the largest float16 number.
  EXPECT_EQ(EncodeSphere<float>(huge, rule, codes), 65504);
  EXPECT_EQ(codes[5], 7);
}

}  // namespace
}  // namespace oscar
