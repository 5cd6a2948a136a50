// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares arithmetic that no golden file covers with float64 formulas.
#include "capture/model/run/decoder_layer.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/capture/model/golden.h"

namespace oscar {
namespace {

TEST(DecoderLayer, RmsNormNormalizesTheLastDimension) {
  const at::Tensor x = at::randn({3, 2, 16}).mul_(5), weight = at::randn({16});
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor expected =
      wide.div(wide.square().mean(-1, true).add(1e-3).sqrt()).mul(weight.to(at::kDouble));
  EXPECT_LT(RelativeError(RmsNorm(x, weight, 1e-3), expected), 1e-6);
}

// Rope rotates dimensions i and i + pairs of a head as one complex number by position * frequency,
// and leaves the other dimensions unchanged.
TEST(DecoderLayer, RotationTurnsPairsOfTheLeadingDimensions) {
  RopeSpec rope;
  rope.rotary_dim = 8;
  const at::Tensor before = at::randn({50, 3, 12});
  at::Tensor x = before.clone();
  RotateInPlace(x, MakeRopeTable(rope, 50, {at::kCPU, at::kFloat}));
  const std::vector<double> frequencies = InverseFrequencies(rope);
  const auto in = before.accessor<float, 3>(), out = x.accessor<float, 3>();
  for (int64_t t = 0; t < 50; ++t) {
    for (int64_t h = 0; h < 3; ++h) {
      for (int64_t i = 0; i < 4; ++i) {
        const double angle = static_cast<double>(t) * frequencies[static_cast<size_t>(i)];
        const auto turned =
            std::complex<double>(in[t][h][i], in[t][h][i + 4]) * std::polar(1.0, angle);
        EXPECT_NEAR(out[t][h][i], turned.real(), 1e-5);
        EXPECT_NEAR(out[t][h][i + 4], turned.imag(), 1e-5);
      }
      for (int64_t i = 8; i < 12; ++i) EXPECT_EQ(out[t][h][i], in[t][h][i]);
    }
  }
}

}  // namespace
}  // namespace oscar
