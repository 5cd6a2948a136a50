// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares RowComparison with plain double loops. Cases: keys and values with different rules for
// exact tokens, exact rows that differ from the reference's, and an arm with its own queries.
#include "calib/cache/row_comparison.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tests/calib/cache/row_case.h"
#include "tests/reference/scalar_attention_kl.h"

namespace oscar {
namespace {

void Expect(const RowCase& c) { ExpectRows(c, ErrorsByTensors(c), 1e-10, 1e-10); }

// For example, keys are quantized in blocks of 128 after 32 sinks, while values have windows.
TEST(RowComparison, KeysAndValuesAreExactByRulesOfTheirOwn) {
  at::manual_seed(1);
  RowCase c;
  Expect(c);
  c.exact = {ExactUntilBlocksFill(32, 128, 128), ExactInWindows({16, 100})};
  Expect(c);
  c.exact = {ExactInWindows({16, 100}), ExactUntilBlocksFill(0, 64, 0)};
  Expect(c);
  c.exact = {ExactUntilBlocksFill(32, 128, 128), {}};
  Expect(c);
  c.exact = {{}, ExactUntilBlocksFill(32, 128, 128)};
  c.window = 90;
  Expect(c);
}

TEST(RowComparison, ExactRowsAndQueriesMayBeTheArmsOwn) {
  at::manual_seed(2);
  RowCase c;
  c.exact = {ExactUntilBlocksFill(4, 64, 32), ExactInWindows({8, 50})};
  c.stored.k = c.Random(2, 8);
  c.stored.v = c.Random(2, 6);
  Expect(c);
  c.own_queries = c.Random(4, 8);
  Expect(c);
  c.stored.k = c.stored.v = at::Tensor();
  Expect(c);
}

TEST(RowComparison, SoftCapsAndSinksAreThoseOfTheLayer) {
  at::manual_seed(4);
  RowCase c;
  c.exact = {ExactInWindows({4, 50}), ExactInWindows({4, 50})};
  c.softcap = 0.7;
  Expect(c);
  c.sinks = {0.5F, -1, 3, 0};
  Expect(c);
  c.softcap = 0;
  Expect(c);
}

TEST(RowComparison, KlIsFiniteHoweverFarALogitIsOff) {
  at::manual_seed(5);
  for (const double size : {1e-3, 1.0, 30.0, 200.0, 3000.0}) {
    const at::Tensor log_p = at::randn({8, 40}, at::kDouble).mul_(size).log_softmax(-1);
    const at::Tensor log_other = at::randn({8, 40}, at::kDouble).mul_(size).log_softmax(-1);
    const at::Tensor kl = KlOfRows({log_p, log_p.exp()}, {log_other, log_other.exp()});
    const at::Tensor single = log_p.to(at::kFloat), other_single = log_other.to(at::kFloat);
    const at::Tensor kl_single =
        KlOfRows({single, single.exp()}, {other_single, other_single.exp()}).to(at::kDouble);
    for (int64_t row = 0; row < log_p.size(0); ++row) {
      const auto of = [&](const at::Tensor& t) {
        return std::span(t[row].const_data_ptr<double>(), 40);
      };
      const double expected = KlDivergence(of(log_p), of(log_other));
      EXPECT_NEAR(kl[row].item<double>(), expected, 1e-12 * (1 + expected)) << size;
      EXPECT_NEAR(kl_single[row].item<double>(), expected, 1e-5 * (size + expected)) << size;
    }
  }
}

// Returns the errors of all rows split by distance, and the rows' KL.
std::pair<DistanceErrors, at::Tensor> ByDistance(const RowCase& c) {
  const AttentionSpec spec = c.Spec();
  RowComparison comparison(spec, c.k, c.v, at::kDouble);
  comparison.SetRows({at::arange(c.dims.tokens), c.q});
  const RowComparison::Prepared stored = comparison.Prepare(c.stored);
  const RowErrors errors =
      comparison.Compare(stored, c.own_queries, std::span(&c.exact, 1), /*apart=*/0)[0];
  return {errors.by_distance, errors.kl};
}

void ExpectDistancesAddUp(const RowCase& c) {
  const auto [errors, kl] = ByDistance(c);
  EXPECT_LT((errors.mass.sum(-1) - 1).abs().max().item<double>(), 1e-12);
  EXPECT_LT((errors.kl.sum(-1).reshape(kl.sizes()) - kl).abs().max().item<double>(), 1e-12);
}

TEST(RowComparison, DistancesAddUpToTheKl) {
  EXPECT_EQ(DistanceFrom(1), 64);
  EXPECT_EQ(DistanceFrom(kDistanceBuckets - 1), 32768);
  EXPECT_EQ(DistanceFrom(kDistanceBuckets), std::numeric_limits<int64_t>::max());
  at::manual_seed(6);
  RowCase c;
  ExpectDistancesAddUp(c);
  c.exact = {ExactInWindows({16, 100}), ExactInWindows({16, 100})};
  ExpectDistancesAddUp(c);
  c.own_queries = c.Random(4, 8);
  ExpectDistancesAddUp(c);
  c.window = 90;
  ExpectDistancesAddUp(c);
  c.softcap = 0.7;
  c.sinks = {0.5F, -1, 3, 0};
  ExpectDistancesAddUp(c);
  EXPECT_GT(ByDistance(c).first.mass.select(-1, kDistanceBuckets).min().item<double>(), 0);
}

// Compares the last row with a plain softmax at distances 0 to 63, 64 to 127, 128 to 255 and 256 to
// 499.
TEST(RowComparison, DistancesAreThoseBetweenQueryAndKey) {
  at::manual_seed(7);
  const RowCase c;
  const DistanceErrors errors = ByDistance(c).first;
  const int64_t last = c.dims.tokens - 1;
  for (int64_t head = 0; head < c.dims.q_heads; ++head) {
    const int64_t kv = head / 2, ratio = head % 2;
    const at::Tensor q = c.q[last][head].mul(c.Spec().scale);
    const auto log_scores = [&](const at::Tensor& k) {
      return at::log_softmax(at::matmul(k.select(1, kv), q), 0).flip(0);  // index: distance
    };
    const at::Tensor log_p = log_scores(c.k), log_other = log_scores(c.stored.k_stored),
                     p = log_p.exp(), terms = p * (log_p - log_other) - p + log_other.exp();
    const int64_t begins[] = {0, 64, 128, 256, 500};
    for (int bucket = 0; bucket < 4; ++bucket) {
      const auto sum = [&](const at::Tensor& of) {
        return of.slice(0, begins[bucket], begins[bucket + 1]).sum().item<double>();
      };
      EXPECT_NEAR(errors.mass[kv][ratio][last][bucket].item<double>(), sum(p), 1e-12);
      EXPECT_NEAR(errors.kl[kv][ratio][last][bucket].item<double>(), sum(terms), 1e-12);
    }
    EXPECT_EQ(errors.mass[kv][ratio][last][4].item<double>(), 0);
  }
}

// Keys after the last row of a slice are skipped. The slice's rows cannot see them, so the results
// are the same.
TEST(RowComparison, ASliceOfRowsIsTheSameRows) {
  at::manual_seed(4);
  RowCase c;
  c.sinks = {0.5F, -1, 2, 0};
  const AttentionSpec spec = c.Spec();
  const ExactSides rules[] = {{ExactInWindows({4, 20}), ExactInWindows({8, 10})}};
  RowComparison comparison(spec, c.k, c.v, at::kDouble);
  const RowComparison::Prepared stored = comparison.Prepare(c.stored);
  const auto rows = [&](int64_t begin, int64_t end) {
    comparison.SetRows({at::arange(begin, end), c.q.slice(0, begin, end)});
    return comparison.Compare(stored, {}, rules, /*apart=*/0)[0];
  };
  const RowErrors all = rows(0, c.dims.tokens), slice = rows(90, 131);
  const auto expect_same = [](const at::Tensor& of_slice, const at::Tensor& of_all) {
    const at::Tensor expected = of_all.slice(2, 90, 131);
    EXPECT_LT((of_slice - expected).abs().max().item<double>(), 1e-12);
    EXPECT_GT(expected.abs().max().item<double>(), 1e-3);
  };
  expect_same(slice.kl, all.kl);
  expect_same(slice.output_error_sq, all.output_error_sq);
  expect_same(slice.k_term_sq, all.k_term_sq);
  expect_same(slice.v_term_sq, all.v_term_sq);
  expect_same(slice.logit_error_sq, all.logit_error_sq);
  expect_same(slice.by_distance.kl, all.by_distance.kl);
  expect_same(slice.by_distance.mass, all.by_distance.mass);
}

TEST(RowComparison, OneResultForEachRule) {
  at::manual_seed(3);
  const RowCase c;
  const AttentionSpec spec = c.Spec();
  RowComparison comparison(spec, c.k, c.v, at::kDouble);
  comparison.SetRows({at::arange(c.dims.tokens), c.q});
  const RowComparison::Prepared stored = comparison.Prepare(c.stored);
  const ExactSides rules[] = {
      {}, {ExactInWindows({4, 20}), ExactInWindows({4, 20})}, {ExactUntilBlocksFill(0, 32, 0), {}}};
  const std::vector<RowErrors> all = comparison.Compare(stored, {}, rules);
  ASSERT_EQ(all.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const RowErrors alone = comparison.Compare(stored, {}, std::span(&rules[i], 1))[0];
    EXPECT_TRUE(alone.kl.equal(all[i].kl));
    EXPECT_TRUE(alone.output_error_sq.equal(all[i].output_error_sq));
    EXPECT_EQ(i == 0, all[i].kl.equal(all[0].kl));
  }
}

}  // namespace
}  // namespace oscar
