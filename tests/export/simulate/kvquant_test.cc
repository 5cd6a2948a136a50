// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "export/simulate/methods/kvquant_fit.h"
#include "export/simulate/rope_rows.h"
#include "linalg/base/error.h"
#include "linalg/stored_float.h"
#include "tests/export/simulate/row_context.h"
#include "tests/reference/scalar_nonuniform.h"

namespace oscar {
namespace {

RopeSpec Rope() {
  RopeSpec rope;
  rope.rotary_dim = 32;
  return rope;
}

TEST(KvQuant, NothingQuantizedIsExact) {
  const CalibrationRows rows = RandomCalibrationRows({});
  const KvQuantOptions off = {.bits = 0};
  const LayerCache cache = KvQuantCache(Rope(), FitKvQuant(Rope(), rows, off), off);
  const CachedRows cached = cache.store({rows.k[0], rows.v[0]});
  EXPECT_TRUE(cached.quantized.k.equal(rows.k[0]));
  EXPECT_TRUE(cached.quantized.v.equal(rows.v[0]));
  EXPECT_FALSE(cached.exact.k.defined());
}

TEST(KvQuant, FirstTokensAreExactAndTheRestIsQuantizedAtOnce) {
  RowContext context({});
  const LayerCache cache = CacheMethodNamed("kvquant_nuq3").make(context.context(), 0, {});
  for (const ExactTokens* exact : {&cache.k_exact, &cache.v_exact}) {
    EXPECT_EQ(exact->sink, 1);
    EXPECT_FALSE(exact->quantized_end);
  }
}

TEST(KvQuant, KeysHaveAFewLevelsPerChannelBeforeRopeAndOutliersAreExact) {
  const CalibrationRows rows = RandomCalibrationRows({});
  const KvQuantOptions options = {.bits = 2};
  const KvQuantLayer layer = FitKvQuant(Rope(), rows, options);
  const LayerCache cache = KvQuantCache(Rope(), layer, options);
  const at::Tensor k = rows.k[1].to(at::kDouble);
  const at::Tensor before = UndoRope(k, Rope()).flatten(1);
  const at::Tensor after =
      UndoRope(cache.store({k, rows.v[1].to(at::kDouble)}).quantized.k, Rope()).flatten(1);
  const at::Tensor outlier = before.gt(layer.k_range.high).logical_or(before.lt(layer.k_range.low));
  EXPECT_NEAR(outlier.to(at::kDouble).mean().item<double>(), 0.01, 0.005);
  EXPECT_LT(after.sub(before).masked_select(outlier).abs().max().item<double>(), 1e-12);
  for (int64_t channel = 0; channel < before.size(1); ++channel) {
    const at::Tensor values =
        after.select(1, channel).masked_select(outlier.select(1, channel).logical_not());
    std::set<int64_t> levels;
    for (int64_t i = 0; i < values.size(0); ++i)
      levels.insert(std::llround(values[i].item<double>() * 1e6));
    EXPECT_LE(levels.size(), 4u);
  }
}

TEST(KvQuant, KeyRangesAreFloat16AndLeaveOutTheFirstTokens) {
  CalibrationRows rows = RandomCalibrationRows({});
  for (at::Tensor& k : rows.k) k[0].fill_(1e6);
  const KvQuantLayer layer = FitKvQuant(Rope(), rows, {});
  const at::Tensor high = layer.k_range.high.flatten();
  for (int64_t i = 0; i < high.size(0); ++i)
    EXPECT_EQ(high[i].item<float>(), RoundToFloat16(high[i].item<float>()));
  EXPECT_LT(high.max().item<float>(), 1e3);
  EXPECT_EQ(FitKvQuant(Rope(), rows, {.first_tokens = 0}).k_range.high.max().item<float>() > 1e3,
            true);
}

// Compares a layer's k-means levels with their definition in plain loops: each level is the mean of
// the normalized values nearest to it.
TEST(KvQuant, LevelsAreAFixedPointOfScalarKMeans) {
  const CalibrationRows rows = RandomCalibrationRows({});
  const KvQuantOptions options = {.bits = 2, .kept = 1, .first_tokens = 2, .max_iterations = 1000};
  const std::vector<float> levels = FitKvQuant(Rope(), rows, options).v.levels;
  ASSERT_EQ(levels.size(), 4U);
  std::vector<double> sum(4, 0.0), weight(4, 0.0);
  for (size_t i = 0; i < rows.v.size(); ++i) {
    const at::Tensor v = rows.v[i].to(at::kFloat).flatten(1).contiguous();
    const int64_t channels = v.size(1);
    for (int64_t token = 2; token < v.size(0); ++token) {
      const float* values = v.const_data_ptr<float>() + token * channels;
      const auto [low, high] = std::minmax_element(values, values + channels);
      for (int64_t c = 0; c < channels; ++c) {
        const float u = (values[c] - (*high + *low) / 2) / ((*high - *low) / 2);
        size_t nearest = 0;
        for (size_t level = 1; level < 4; ++level) {
          if (std::abs(u - levels[level]) < std::abs(u - levels[nearest])) nearest = level;
        }
        sum[nearest] += double{u};
        weight[nearest] += 1;
      }
    }
  }
  for (size_t level = 0; level < 4; ++level)
    EXPECT_NEAR(sum[level] / weight[level], levels[level], 1e-4) << level;
}

TEST(KvQuant, QNormGivesQuantizedValuesTheMomentsOfTheirOriginals) {
  const CalibrationRows rows = RandomCalibrationRows({});
  const KvQuantOptions options = {.bits = 2, .q_norm = true};
  const KvQuantLayer layer = FitKvQuant(Rope(), rows, options);
  EXPECT_NE(layer.k.levels, layer.k.values);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& k : rows.k) parts.push_back(UndoRope(k, Rope()).slice(0, 1).flatten(1));
  const at::Tensor u = Normalized(at::cat(parts), layer.k_range);
  const at::Tensor inliers = u.masked_select(u.abs().le(1));
  const at::Tensor read = NearestLevels(inliers, layer.k, true);
  EXPECT_NEAR(read.mean().item<double>(), inliers.mean().item<double>(), 1e-5);
  EXPECT_NEAR(read.std(false).item<double>(), inliers.std(false).item<double>(), 1e-5);
}

TEST(KvQuant, RefusesRowsThatSayNothing) {
  EXPECT_THROW(FitKvQuant(Rope(), RandomCalibrationRows({.tokens = 1}), {}), InputError);
  CalibrationRows rows = RandomCalibrationRows({});
  for (at::Tensor& v : rows.v) v.fill_(1);
  EXPECT_THROW(FitKvQuant(Rope(), rows, {}), InputError);
}

// The paper counts b bits per value and 32 for each outlier. Outliers are 1 % of the keys, and 12
// of the 1024 values of a token: those at or beyond the token's own quantiles. The first token
// takes 16 bits per value. In memory, a token also has a 32-bit pointer for its keys and for its
// values, and a 32-bit range for its values.
TEST(KvQuant, CostOfThePaperAndOfBytes) {
  RowContext context({.num_q_heads = 32, .num_kv_heads = 8, .head_dim = 128, .v_head_dim = 128});
  constexpr int64_t kTokens = 32768;
  const double exact = 1.0 / kTokens;
  for (const int bits : {2, 3, 4}) {
    const std::string name = "kvquant_nuq" + std::to_string(bits);
    const CacheCost cost = CacheMethodNamed(name).cost(context.context(), {}, kTokens);
    const double paper = bits + 32 * (0.01 * 1024 + 12) / 2048;
    EXPECT_NEAR(cost.paper, paper * (1 - exact) + 16 * exact, 1e-9);
    const double actual = paper + (2 * 32 + 32) / 2048.0;
    EXPECT_NEAR(cost.actual, actual * (1 - exact) + 16 * exact, 1e-9);
    if (bits > 2) continue;  // only 2-bit codes have a dense variant
    const CacheCost dense = CacheMethodNamed(name + "_dense").cost(context.context(), {}, kTokens);
    EXPECT_NEAR(dense.paper, bits, 6e-4);
    EXPECT_NEAR(dense.actual, bits + 32 / 2048.0, 6e-4);
  }
  EXPECT_EQ(CacheMethodNamed("kvquant_nuq2").cost(context.context(), {}, 1).actual, 16);
}

// The paper's 2.32 bits hold for models with thousands of channels. With 128 channels, 2 values per
// token are outliers.
TEST(KvQuant, BitsGrowWhereATokenHasFewChannels) {
  const auto paper = [](int64_t num_kv_heads, int64_t dim) {
    RowContext context({.num_q_heads = num_kv_heads,
                        .num_kv_heads = num_kv_heads,
                        .head_dim = dim,
                        .v_head_dim = dim});
    return CacheMethodNamed("kvquant_nuq2").cost(context.context(), {}, int64_t{1} << 30).paper;
  };
  EXPECT_NEAR(paper(32, 128), 2.32, 0.005);
  EXPECT_NEAR(paper(2, 64), 2 + (0.32 + 32 * 2 / 128.0) / 2, 1e-6);  // 2.41
}

TEST(KvQuant, CountedValueOutliersAreThoseOfTheCodec) {
  at::manual_seed(5);
  const at::Tensor v = at::randn({1, 1024}, at::kFloat);
  std::vector<float> out(1024);
  const NonuniformFormat format{2, {-1, 0, 0.5F, 1}, {-1, 0, 0.5F, 1}};
  EXPECT_EQ(RoundTripToken<float>({v.const_data_ptr<float>(), 1024}, 0.99, format, out), 12);
}

}  // namespace
}  // namespace oscar
