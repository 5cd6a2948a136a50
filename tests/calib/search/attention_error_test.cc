// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/attention_error.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/side_tensors.h"
#include "calib/fit/fit.h"
#include "calib/search/clip_search.h"
#include "capture/files/strict_json.h"
#include "tests/calib/observe/golden_layer.h"
#include "tests/reference/scalar_attention_kl.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Observes a layer with one sequence, of which all rows are held out.
ObservedLayer ObserveAllRows(const GoldenLayer& layer) {
  const int64_t tokens = layer.q[0].size(0);
  return Observe(layer, {HeldOutKind::kTailRows, {0}, tokens}, tokens);
}

TEST(AttentionError, EqualsTheScalarReference) {
  const GoldenLayer layer = RandomLayer(4, 2, 16, 8, {80}, {}, 11);
  const ObservedLayer observed = ObserveAllRows(layer);
  const SideResult k = HadamardSide(16), v = HadamardSide(8);
  const auto results =
      MeasureAttentionError(observed, layer.spec, {{"arm", &k, &v, 0.9, 0}}, {8, 16});
  const ArmResult single =
      MeasureAttentionError(observed, layer.spec, {{"arm", &k, &v, 0.9, 0}}, {8, 16}, 0, at::kFloat)
          .at(0);
  EXPECT_NEAR(single.kl_mean / results.at(0).kl_mean, 1, 1e-5);
  EXPECT_NEAR(single.output_rel_error / results[0].output_rel_error, 1, 1e-5);
  EXPECT_NEAR(single.output_rel_error_no_windows / results[0].output_rel_error_no_windows, 1, 1e-5);

  // Computes K̂ and V̂ step by step.
  const auto stored = [](const at::Tensor& x, const SideResult& side, double ratio) {
    const at::Tensor rotation = RotationTensor(side);
    const at::Tensor y = RotateRows(x, rotation);
    const at::Tensor thresholds = ClipThresholds(std::get<0>(y.abs().sort(-1)), ratio);
    return AffineRoundTrip(y, thresholds, {2, side.dim})
        .to(at::kDouble)
        .matmul(rotation.to(at::kDouble).transpose(1, 2));
  };
  const at::Tensor k_hat = stored(layer.k[0], k, 0.9), v_hat = stored(layer.v[0], v, 0);
  for (const bool windows : {true, false}) {
    AttentionError expected;
    for (int64_t head = 0; head < 4; ++head) {
      const std::vector<double> q = Values(layer.q[0].select(1, head)),
                                keys = Values(layer.k[0].select(1, head / 2)),
                                values = Values(layer.v[0].select(1, head / 2)),
                                k_stored = Values(k_hat[head / 2]),
                                v_stored = Values(v_hat[head / 2]);
      const AttentionOperands operands{80, 16, 8, q, keys, k_stored, values, v_stored};
      expected.Merge(CompareAttention(operands, {layer.spec.attention.scale, 0},
                                      windows ? CacheWindows{8, 16} : CacheWindows{}, "test"));
    }
    const ArmResult& arm = results.at(0);
    if (windows) {
      EXPECT_EQ(arm.rows, 80);
      EXPECT_EQ(arm.rows_beyond, 80 - 24);
      EXPECT_NEAR(arm.kl_mean, expected.kl_mean(), 1e-12);
      EXPECT_NEAR(arm.kl_mean_beyond, *expected.kl_mean_beyond(), 1e-12);
      EXPECT_NEAR(arm.kl_max, expected.kl_max, 1e-12);
      EXPECT_NEAR(arm.output_rel_error, expected.output_rel_error(), 1e-12);
      EXPECT_NEAR(arm.output_rel_error_beyond, *expected.output_rel_error_beyond(), 1e-12);
    } else {
      EXPECT_NEAR(arm.kl_mean_no_windows, expected.kl_mean(), 1e-12);
      EXPECT_NEAR(arm.output_rel_error_no_windows, expected.output_rel_error(), 1e-12);
    }
  }
}

TEST(AttentionError, InsideTheWindowsEverythingIsExactlyZero) {
  const GoldenLayer layer = RandomLayer(4, 2, 16, 8, {60}, {}, 12);
  const SideResult k = HadamardSide(16), v = HadamardSide(8);
  const auto results =
      MeasureAttentionError(ObserveAllRows(layer), layer.spec, {{"arm", &k, &v, 0, 0}}, {20, 40});
  EXPECT_EQ(results[0].rows_beyond, 0);
  EXPECT_EQ(results[0].kl_mean, 0);
  EXPECT_EQ(results[0].kl_max, 0);
  EXPECT_LT(results[0].output_rel_error, 1e-15);
  EXPECT_GT(results[0].kl_mean_no_windows, 0);
}

TEST(AttentionError, ASlidingWindowInsideTheRecentOneHidesTheError) {
  const SideResult k = HadamardSide(16), v = HadamardSide(8);
  const GoldenLayer layer = RandomLayer(4, 2, 16, 8, {100}, 16, 12);
  const auto results =
      MeasureAttentionError(ObserveAllRows(layer), layer.spec, {{"arm", &k, &v, 0, 0}}, {0, 16});
  EXPECT_EQ(results[0].rows_beyond, 0);
  EXPECT_EQ(results[0].kl_mean, 0);
}

TEST(AttentionError, EqualsTheOracle) {
  OSCAR_PACK_OR_SKIP(input_path, "oracle/tiny-qwen3-768.input.safetensors");
  OSCAR_PACK_OR_SKIP(oracle_path, "oracle/tiny-qwen3-768.json");
  const SafetensorsFile tensors = SafetensorsFile::Open(input_path);
  const Json oracle = ReadJsonFile(oracle_path);
  for (int id = 0; id < 4; ++id) {
    const GoldenLayer layer = ReadGoldenLayer(tensors, id);
    const ObservedLayer observed = ObserveAllRows(layer);
    const LayerFit fit = FitLayer(observed.held_out, {});
    const SideResult identity = IdentitySide(64), hadamard = HadamardSide(64);
    const auto results = MeasureAttentionError(
        observed, layer.spec,
        {{"naive", &identity, &identity, 0, 0},
         {"naive_clip", &identity, &identity, 0.96, 0.92},
         {"hadamard", &hadamard, &hadamard, 0, 0},
         {"hadamard_clip", &hadamard, &hadamard, 0.96, 0.92},
         {"oscar_shared_paper_clip", &fit.k_shared, &fit.v_shared, 0.96, 0.92},
         {"oscar_head_paper", &fit.k, &fit.v, 0, 0}},
        {64, 256});
    const Json& attention = oracle.at("layers").at(std::to_string(id)).at("attention");
    for (const ArmResult& arm : results) {
      const auto mean = [&](const char* windows, const char* key) {
        double sum = 0;
        for (const Json& head : attention.at(windows).at(arm.name).at(key))
          sum += head.get<double>();
        return sum / 4;
      };
      // This code rotates and quantizes in float32, as a cache would, the oracle in float64. Codes
      // of values on a rounding boundary may differ, and bf16 values that are not rotated are often
      // on one.
      const double tolerance = arm.name.starts_with("naive") ? 0.015 : 2e-3;
      EXPECT_EQ(arm.rows_beyond, 448);
      EXPECT_NEAR(arm.kl_mean, mean("sink64_recent256", "kl_mean"), tolerance * arm.kl_mean)
          << id << arm.name;
      EXPECT_NEAR(arm.kl_mean_beyond, mean("sink64_recent256", "kl_mean_beyond"),
                  tolerance * arm.kl_mean_beyond)
          << id << arm.name;
      EXPECT_NEAR(arm.kl_mean_no_windows, mean("sink0_recent0", "kl_mean"),
                  tolerance * arm.kl_mean_no_windows)
          << id << arm.name;
    }
  }
}

// Latents are quantized once. This test reads them through expanded heads: keys are W_UK c with the
// exact position part, values are W_UV c.
TEST(AttentionError, LatentsEqualTheExpandedHeads) {
  const GoldenLatents layer = RandomLatents(3, 16, {60, 60}, 5);
  const ObservedLayer observed = Observe(layer, {HeldOutKind::kDocuments, {60, 0}, 60}, 60);
  const SideResult identity = IdentitySide(16), hadamard = HadamardSide(16);
  const std::vector<ArmResult> arms = MeasureAttentionError(
      observed, layer.spec,
      {{"naive", &identity, &identity, 0, 0}, {"hadamard", &hadamard, &hadamard, 0, 0}}, {3, 8});

  const at::Tensor c = layer.c_kv[1], k_pe = layer.k_pe[1];
  const at::Tensor r = at::tensor(hadamard.rotation, at::kDouble).view({16, 16});
  const auto rounded = [](const at::Tensor& rows) {
    return AffineRoundTrip(rows.to(at::kFloat), {}, {2, 16}).to(at::kDouble);
  };
  const at::Tensor stored[] = {rounded(c), rounded(c.matmul(r)).matmul(r.t())};
  const at::Tensor i = at::arange(60).unsqueeze(1), j = at::arange(60).unsqueeze(0);
  const at::Tensor hidden = j.gt(i), exact = j.lt(3).logical_or(j.ge(i + 1 - 8));
  const auto heads = [](const at::Tensor& x) { return x.transpose(0, 1); };
  const auto logits = [&](const at::Tensor& latents) {
    return heads(layer.q[1])
        .matmul(heads(layer.ExpandedKeys(latents, k_pe)).transpose(1, 2))
        .mul(layer.spec.attention.scale);
  };
  const auto log_scores = [&](const at::Tensor& l) {
    return l.masked_fill(hidden, -INFINITY).log_softmax(-1);
  };
  const at::Tensor log_p = log_scores(logits(c)), p = log_p.exp();
  const at::Tensor out = p.matmul(heads(layer.ExpandedValues(c)));
  for (size_t arm = 0; arm < 2; ++arm) {
    for (const bool windows : {false, true}) {
      const at::Tensor is_exact = windows ? exact : at::zeros_like(exact);
      const at::Tensor log_q = log_scores(at::where(is_exact, logits(c), logits(stored[arm])));
      const at::Tensor q = log_q.exp();
      const double kl = p.mul(log_p - log_q).masked_fill(hidden, 0).sum(-1).mean().item<double>();
      const at::Tensor other =
          q.masked_fill(is_exact, 0)
              .matmul(heads(layer.ExpandedValues(stored[arm])))
              .add(q.masked_fill(is_exact.logical_not(), 0).matmul(heads(layer.ExpandedValues(c))));
      const double error = ((other - out).norm() / out.norm()).item<double>();
      EXPECT_NEAR((windows ? arms[arm].kl_mean : arms[arm].kl_mean_no_windows) / kl, 1, 1e-5);
      EXPECT_NEAR(
          (windows ? arms[arm].output_rel_error : arms[arm].output_rel_error_no_windows) / error, 1,
          1e-5);
    }
  }
}

}  // namespace
}  // namespace oscar
