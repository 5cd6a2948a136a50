// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic that no golden file covers, against the formulas in float64.
#include "capture/model/run/decoder_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/capture/model/golden.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

TEST(DecoderLayer, RmsNormNormalizesTheLastDimension) {
  const at::Tensor x = at::randn({3, 2, 16}).mul_(5), weight = at::randn({16});
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor expected =
      wide.div(wide.square().mean(-1, true).add(1e-3).sqrt()).mul(weight.to(at::kDouble));
  EXPECT_LT(RelativeError(RmsNorm(x, weight, 1e-3), expected), 1e-6);
}

// Dimension i and i + pairs of a head are one complex number, turned by position * frequency; the
// rest is left alone.
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

// No pack has linear scaling: queries and keys of the first layer, computed here in float64 from
// the stored weights.
TEST(DecoderLayer, LinearRopeScalingEndToEnd) {
  Json config = ReadJsonFile((TestData("arch/llama") / "config.legacy.json").string());
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  const ModelSpec spec = ReadModelSpec(config);
  const Checkpoint checkpoint = Checkpoint::Open(TestData("arch/llama"));
  const SafetensorsFile file = SafetensorsFile::Open(TestData("arch/llama") / "model.safetensors");
  constexpr int64_t kTokens = 90, kHidden = 64, kDim = 32;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kTokens; ++i) ids.push_back((i * 37) % 256);

  const LayerLoop loop(checkpoint, spec, at::kCPU, at::kFloat);
  at::Tensor hidden = loop.Embed({ids});
  KeepingObserver observer;
  loop.Run(hidden, {kTokens}, 0, observer, [](size_t) { return false; });

  const auto embedding = StoredTensor(file, "model.embed_tokens.weight");
  const auto norm = StoredTensor(file, "model.layers.0.input_layernorm.weight");
  const auto rows = embedding.accessor<float, 2>();
  for (const auto& [name, projection, heads] :
       {std::tuple("layer.0.q", "q_proj", int64_t{4}), {"layer.0.k", "k_proj", 2}}) {
    const auto weight =
        StoredTensor(file, std::string("model.layers.0.self_attn.") + projection + ".weight");
    const auto w = weight.accessor<float, 2>();
    at::Tensor expected = at::empty({kTokens, heads, kDim}, at::kDouble);
    auto out = expected.accessor<double, 3>();
    for (int64_t t = 0; t < kTokens; ++t) {
      const int32_t id = ids[static_cast<size_t>(t)];
      double squares = 0;
      for (int64_t i = 0; i < kHidden; ++i)
        squares += std::pow(static_cast<double>(rows[id][i]), 2);
      const double inverse_rms = 1 / std::sqrt(squares / kHidden + 1e-3);
      const auto project = [&](int64_t row) {
        double sum = 0;
        for (int64_t i = 0; i < kHidden; ++i) {
          sum += static_cast<double>(w[row][i]) * rows[id][i] * inverse_rms *
                 norm.const_data_ptr<float>()[i];
        }
        return sum;
      };
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < kDim / 2; ++i) {
          const double angle = static_cast<double>(t) / 4.0 *
                               std::pow(10000.0, -2.0 * static_cast<double>(i) / kDim);
          const std::complex<double> pair(project(h * kDim + i), project(h * kDim + i + kDim / 2));
          const auto turned = pair * std::polar(1.0, angle);
          out[t][h][i] = turned.real();
          out[t][h][i + kDim / 2] = turned.imag();
        }
      }
    }
    EXPECT_LT(RelativeError(observer.kept.at(name), expected), 2e-6) << name;
  }
}

}  // namespace
}  // namespace oscar
