// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/row_comparison.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/rotation.h"
#include "tests/export/simulate/row_context.h"

namespace oscar {
namespace {

MethodContext::Options Windows(int64_t group = 0) {
  MethodContext::Options options;
  options.windows = {4, 16};
  options.quant_group_size = group;
  return options;
}

// Returns the mean attention-KL on rows that nothing was fitted to.
double Kl(const LayerCache& cache, const AttentionSpec& spec) {
  RowGeometry g = {};
  g.sequences = 6;
  const CalibrationRows rows = RandomCalibrationRows(g);
  const at::Tensor k = rows.k[5], v = rows.v[5];
  RowComparison comparison(spec, k, v, at::kDouble);
  comparison.SetRows({at::arange(k.size(0)), rows.q[5]});
  const CachedRows cached = cache.store({k, v});
  StoredCache stored = {};
  stored.k_stored = cached.quantized.k;
  stored.v_stored = cached.quantized.v;
  const ExactTokens windows = ExactInWindows({4, 16});
  const ExactSides exact[] = {{windows, windows}};
  return comparison.Compare(comparison.Prepare(stored), {}, exact)[0].kl.mean().item<double>();
}

TEST(Optr, BeatsItsStartOnOtherRows) {
  RowContext context({.sequences = 4}, Windows());
  const auto kl = [&](const CacheMethod& method) {
    return Kl(method.make(context.context(), 0, {.clip = true}), context.spec());
  };
  const double start = kl(HadamardInt2Method()), refined = kl(CacheMethodNamed("optr_hadamard"));
  EXPECT_LT(refined, 0.95 * start);
  EXPECT_LT(kl(CacheMethodNamed("optr")), kl(OscarSharedMethod()));
}

// Keys that all equal the head's mean are read back exactly, because centring removes the mean
// before quantization.
TEST(Optr, AConstantInAllKeysIsReadBack) {
  RowContext context({}, Windows());
  const LayerCache cache = CacheMethodNamed("optr").make(context.context(), 0, {.clip = true});
  const at::Tensor k = context.rows().k[0], v = context.rows().v[0];
  const at::Tensor mean = at::cat(context.rows().k).mean(0);
  const at::Tensor read =
      cache.store({mean.unsqueeze(0).expand({7, -1, -1}), v.slice(0, 0, 7)}).quantized.k;
  EXPECT_LT(read.sub(mean).abs().max().item<double>(), 1e-4);
  EXPECT_GT(cache.store({k, v}).quantized.k.sub(k).abs().max().item<double>(), 0.1);
}

// If the windows hold all tokens, nothing is learned. The method must then equal its quantizer made
// by hand: keys are centred and rotated, and every group is clipped at its own percentile.
TEST(Optr, GroupsHaveThresholdsOfTheirOwn) {
  MethodContext::Options options = Windows(16);
  options.windows = {0, 1000};
  options.k_clip = 0.8;
  RowContext context({}, options);
  const CacheSides rows = {context.rows().k[0], context.rows().v[0]};
  const at::Tensor read = CacheMethodNamed("optr_hadamard")
                              .make(context.context(), 0, {.clip = true})
                              .store(rows)
                              .quantized.k;
  const at::Tensor hadamard = RotationTensor({HadamardRotation(32).matrix()})[0],
                   mean = at::cat(context.rows().k).mean(0);
  const at::Tensor groups = at::matmul(rows.k.sub(mean), hadamard).reshape({-1, 16});
  const at::Tensor thresholds = std::get<0>(groups.abs().sort(-1)).narrow(-1, 12, 1);
  const at::Tensor quantized = AffineRoundTrip(groups, thresholds, {2, 16}).view_as(rows.k);
  const at::Tensor error = read.sub(at::matmul(quantized, hadamard).add(mean)).abs();
  // Another order of summation occasionally moves a value to the next code.
  EXPECT_LT(error.gt(1e-4).to(at::kFloat).mean().item<double>(), 1e-3);
}

// The paper reports 2.31714 bits at 65536 tokens with windows of 64 and 256. The allocation has
// float32 scales and zeros, a ring of 263 tokens, and pages of 8.
TEST(Optr, Cost) {
  RowContext context({.num_q_heads = 32, .num_kv_heads = 8, .head_dim = 128, .v_head_dim = 128});
  const CacheCost cost = CacheMethodNamed("optr").cost(context.context(), {.windows = true}, 65536);
  EXPECT_NEAR(cost.paper, 2.31714, 5e-6);
  EXPECT_NEAR(cost.actual, (65216 * 2.5 + 16.0 * (64 + 263)) / 65536, 1e-9);
  EXPECT_EQ(CacheMethodNamed("optr").cost(context.context(), {}, 65536).paper, 2.25);
}

}  // namespace
}  // namespace oscar
