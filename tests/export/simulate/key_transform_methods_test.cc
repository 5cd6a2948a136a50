// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests balanced and pair-scaled keys, centring, and bf16 arithmetic (export/simulate/RESULTS.md,
// "A better key transform").
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "calib/cache/bf16_arithmetic.h"
#include "export/simulate/bf16_cache.h"
#include "export/simulate/fitted_moments.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

constexpr const char* kMethods[] = {
    "oscar_per_head_centred", "pair_scaled", "pair_scaled_pow2", "pair_scaled_k3v2",
    "pair_scaled_k4v2",       "balanced",    "balanced_k3v2",    "balanced_k4v2"};

// Returns the squared error of the logits, relative to the exact logits of centred keys.
double LogitError(RowContext& rows, const CachedRows& stored, const CacheSides& x) {
  const at::Tensor error = (stored.quantized.k - x.k).to(at::kDouble).permute({1, 0, 2});
  const at::Tensor centred =
      (x.k - x.k.mean(0, true)).to(at::kDouble).permute({1, 0, 2});  // softmax ignores a constant
  const int64_t heads = error.size(0), dim = error.size(2);
  const at::Tensor q = rows.rows()
                           .q[0]
                           .to(at::kDouble)
                           .view({-1, heads, 2, dim})
                           .permute({1, 0, 2, 3})
                           .reshape({heads, -1, dim});
  return (at::matmul(q, error.transpose(1, 2)).square().sum() /
          at::matmul(q, centred.transpose(1, 2)).square().sum())
      .item<double>();
}

double LogitError(RowContext& rows, std::string_view name, const ArmOptions& options = {}) {
  const CacheSides x = RowsOf(rows, at::kFloat);
  return LogitError(rows, CacheMethodNamed(name).make(rows.context(), 0, options).store(x), x);
}

TEST(KeyTransformMethods, CostLessLogitErrorInOrder) {
  RowContext rows(kWideRows);
  const double oscar = LogitError(rows, "oscar_per_head"),
               centred = LogitError(rows, "oscar_per_head_centred"),
               scaled = LogitError(rows, "pair_scaled"), balanced = LogitError(rows, "balanced");
  EXPECT_LT(centred, oscar);
  EXPECT_LT(scaled, 0.7 * centred);
  EXPECT_LT(balanced, scaled);
  EXPECT_LT(LogitError(rows, "pair_scaled_pow2"), 1.2 * scaled);
  EXPECT_LT(LogitError(rows, "balanced_k3v2"), 0.3 * balanced);
  EXPECT_LT(LogitError(rows, "balanced_k4v2"), 0.08 * balanced);
  EXPECT_NEAR(LogitError(rows, "balanced", {.bf16 = true}) / balanced, 1, 0.02);
}

// The centred method stores keys without their mean as OSCAR does, and values exactly like OSCAR,
// with and without clipping.
TEST(KeyTransformMethods, CentredDiffersFromOscarInCentringAlone) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kDouble);
  const LayerMoments moments = ArtifactMoments(rows.context(), 0);
  std::vector<at::Tensor> means;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    const Vector of_head = moments.KeyMean(head);
    means.push_back(
        at::tensor(at::ArrayRef<double>(of_head.data(), of_head.data() + of_head.size())));
  }
  const at::Tensor mean = at::stack(means);
  for (const bool clip : {false, true}) {
    const ArmOptions options{.clip = clip};
    const CacheSides centred = Stored(rows, "oscar_per_head_centred", x, options),
                     oscar = Stored(rows, "oscar_per_head", {x.k - mean, x.v}, options);
    EXPECT_LT(RelativeError(centred.k, oscar.k + mean), 1e-3);
    EXPECT_LT(RelativeError(centred.v, oscar.v), 1e-3);
  }
}

// Rows must survive the round trip without quantization. This shows that the transform, its inverse
// and the mean agree.
TEST(KeyTransformMethods, WithoutAQuantizerRowsComeBack) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kDouble);
  for (const char* name : kMethods) {
    const LayerCache cache = CacheMethodNamed(name).make(rows.context(), 0, {.bf16 = true});
    const CachedRows stored = cache.store(x);
    EXPECT_LT(RelativeError(stored.exact.k, x.k), 1e-4) << name;
    EXPECT_LT(RelativeError(stored.exact.v, x.v), 1e-4) << name;
    EXPECT_GT(RelativeError(stored.quantized.k, x.k), 1e-4) << name;
    const at::Tensor q = rows.rows().q[0].to(at::kDouble);
    EXPECT_LT(RelativeError(cache.queries(q), q), 1e-4) << name;
    EXPECT_EQ(stored.exact.k.scalar_type(), at::kDouble);
  }
}

// A runtime's logit is the dot product of two rotated bf16 rows.
TEST(Bf16Arithmetic, LogitsAreThoseOfRotatedRows) {
  at::manual_seed(1);
  const int64_t dim = 32, heads = 2, tokens = 9;
  const at::Tensor x = at::randn({heads, dim, dim}, at::kDouble) + 4 * at::eye(dim, at::kDouble);
  const at::Tensor inverse = at::linalg_inv(x);
  const RotatedQuantizer quantizer{
      .rotation = x.to(at::kFloat), .codes = {{0}}, .inverse = inverse.to(at::kFloat)};
  const at::Tensor k = RoundedToBf16(at::randn({tokens, heads, dim})).to(at::kDouble);
  const at::Tensor q = RoundedToBf16(at::randn({3, 2 * heads, dim})).to(at::kDouble);
  const at::Tensor rows = Bf16KeysThroughCache(quantizer, k).exact;
  const at::Tensor queries = Bf16Queries(quantizer, q);
  for (int64_t head = 0; head < 2 * heads; ++head) {
    const at::Tensor y =
        TimesInBf16(k.select(1, head / 2).to(at::kFloat), quantizer.rotation[head / 2]);
    const at::Tensor z =
        TimesInBf16(q.select(1, head).to(at::kFloat), quantizer.inverse[head / 2].t());
    const at::Tensor expected = at::matmul(z, y.t()).to(at::kDouble);
    const at::Tensor actual = at::matmul(queries.select(1, head), rows.select(1, head / 2).t());
    EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-4);
    EXPECT_GT((actual - at::matmul(q.select(1, head), k.select(1, head / 2).t()))
                  .abs()
                  .max()
                  .item<double>(),
              1e-3);
  }
}

TEST(Bf16Arithmetic, WithoutARotationRowsAreRounded) {
  const at::Tensor rows = at::randn({4, 2, 8});
  const RotatedQuantizer none{.codes = {{0}}};
  EXPECT_TRUE(at::equal(Bf16KeysThroughCache(none, rows).quantized, RoundedToBf16(rows)));
  EXPECT_TRUE(at::equal(Bf16ValuesThroughCache(none, rows).exact, RoundedToBf16(rows)));
  EXPECT_TRUE(at::equal(Bf16Queries(none, rows), RoundedToBf16(rows)));
}

TEST(RotatedQuantizer, TheMeanGoesBeforeAndComesBack) {
  at::manual_seed(1);
  const at::Tensor mean = at::arange(16, at::kFloat).mul_(10).expand({2, 16}).contiguous();
  const at::Tensor rows = at::randn({5, 2, 16}) + mean;
  RotatedQuantizer quantizer{.codes = {{8}}};
  const double without = RelativeError(RoundTrip(quantizer, rows), rows);
  quantizer.mean = mean;  // a row's range no longer includes the spread of channel means
  EXPECT_LT(RelativeError(RoundTrip(quantizer, rows), rows), 0.1 * without);
  quantizer.mean = at::full({2, 16}, 100, at::kFloat);
  const at::Tensor ones = at::full({5, 2, 16}, 100, at::kFloat);
  EXPECT_TRUE(at::equal(RoundTrip(quantizer, ones), ones));
}

TEST(BalancedValues, NeedTheOutputProjection) {
  RowContext rows(kSquareRows);
  EXPECT_FALSE(CacheMethodNamed("balanced_values").available(rows.context()));
  EXPECT_TRUE(CacheMethodNamed("balanced").available(rows.context()));
}

TEST(BalancedValues, FollowWhatOProjReads) {
  const int64_t width = kSquareRows.num_q_heads * kSquareRows.v_head_dim;
  at::manual_seed(2);
  const at::Tensor weight = at::randn({48, width}) * at::exp(at::randn({width})).unsqueeze(0);
  MethodContext::Options options;
  options.output_projection = [&](size_t) { return weight; };
  RowContext rows(kSquareRows, options);
  const CacheSides x = RowsOf(rows, at::kFloat);
  const auto output_error = [&](std::string_view name) {
    const at::Tensor error = Stored(rows, name, x).v - x.v;  // [tokens, num_kv_heads, dim]
    return at::matmul(error.repeat_interleave(2, 1).flatten(1), weight.t())
        .square()
        .sum()
        .item<double>();
  };
  EXPECT_LT(output_error("balanced_values"), 0.8 * output_error("balanced"));
}

}  // namespace
}  // namespace oscar
