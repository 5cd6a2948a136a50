// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The comparison of rows against a plain double loop: keys and values that are exact by different
// rules, exact rows that are not the reference's, and queries of the arm's own.
#include "calib/cache/row_comparison.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "tests/reference/scalar_attention_kl.h"

namespace oscar {
namespace {

constexpr int64_t kTokens = 500, kQueryHeads = 4, kKvHeads = 2, kDim = 8, kValueDim = 6;

AttentionSpec Spec(std::optional<int64_t> window) {
  AttentionSpec spec;
  spec.num_q_heads = kQueryHeads;
  spec.num_kv_heads = kKvHeads;
  spec.head_dim = kDim;
  spec.v_head_dim = kValueDim;
  spec.scale = 0.4;
  spec.window = window;
  return spec;
}

at::Tensor Random(int64_t heads, int64_t dim) {
  return at::randn({kTokens, heads, dim}, at::kDouble);
}

struct Case {
  at::Tensor q = Random(kQueryHeads, kDim), k = Random(kKvHeads, kDim),
             v = Random(kKvHeads, kValueDim);
  StoredCache stored{Random(kKvHeads, kDim), Random(kKvHeads, kValueDim), {}, {}};
  at::Tensor own_queries;  // undefined: q
  ExactSides exact;
  std::optional<int64_t> window;
  double softcap = 0;
  std::vector<float> sinks = {};  // of the query heads
};

bool IsExact(const ExactTokens& tokens, int64_t query, int64_t key) {
  return key < tokens.sink || (tokens.quantized_end && key >= tokens.quantized_end(query + 1));
}

struct Row {
  std::vector<double> p, logits, output;
  double sink_p = 0;
  std::vector<std::vector<double>> values;  // as this row reads them
};

// One row over what `key` and `value` give of token t.
Row Attend(const Case& c, const at::Tensor& queries, int64_t query, int64_t head, auto key,
           auto value) {
  const auto q = queries.accessor<double, 3>();
  Row row;
  const int64_t first = c.window ? std::max<int64_t>(0, query - *c.window + 1) : 0;
  double largest = -INFINITY, sum = 0;
  for (int64_t t = first; t <= query; ++t) {
    double logit = 0;
    for (int64_t i = 0; i < kDim; ++i) logit += q[query][head][i] * key(t, i);
    logit *= 0.4;
    row.logits.push_back(c.softcap == 0 ? logit : c.softcap * std::tanh(logit / c.softcap));
    largest = std::max(largest, row.logits.back());
    row.values.emplace_back();
    for (int64_t i = 0; i < kValueDim; ++i) row.values.back().push_back(value(t, i));
  }
  for (const double logit : row.logits) row.p.push_back(std::exp(logit - largest));
  for (const double p : row.p) sum += p;
  if (!c.sinks.empty()) {
    row.sink_p = std::exp(c.sinks[static_cast<size_t>(head)] - largest);
    sum += row.sink_p;
    row.sink_p /= sum;
  }
  row.output.assign(kValueDim, 0);
  for (size_t t = 0; t < row.p.size(); ++t) {
    row.p[t] /= sum;
    for (size_t i = 0; i < kValueDim; ++i) row.output[i] += row.p[t] * row.values[t][i];
  }
  return row;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

void Expect(const Case& c) {
  AttentionSpec spec = Spec(c.window);
  spec.softcap = c.softcap;
  spec.sinks = c.sinks.empty() ? "" : "sinks";
  spec.sink_logits = c.sinks;
  RowComparison comparison(spec, c.k, c.v, at::kDouble);
  comparison.SetRows({at::arange(kTokens), c.q});
  const ExactSides exact[] = {c.exact};
  const RowErrors errors =
      comparison.Compare(comparison.Prepare(c.stored), c.own_queries, exact)[0];
  const auto number = [](const at::Tensor& x, int64_t head, int64_t query) {
    return x.flatten(0, 1)[head][query].item<double>();
  };
  const at::Tensor exact_k = c.stored.k.defined() ? c.stored.k : c.k,
                   exact_v = c.stored.v.defined() ? c.stored.v : c.v;
  for (int64_t query : {0, 1, 31, 32, 33, 127, 159, 160, 287, 288, 300, 415, 416, 499}) {
    for (int64_t head = 0; head < kQueryHeads; ++head) {
      const int64_t kv = head / (kQueryHeads / kKvHeads);
      const auto of = [&](const at::Tensor& x) {
        return [x, kv, a = x.accessor<double, 3>()](int64_t t, int64_t i) { return a[t][kv][i]; };
      };
      const auto mixed = [&](const ExactTokens& tokens, const at::Tensor& from_exact,
                             const at::Tensor& from_stored) {
        return [&tokens, query, e = of(from_exact), s = of(from_stored)](int64_t t, int64_t i) {
          return IsExact(tokens, query, t) ? e(t, i) : s(t, i);
        };
      };
      const Row row = Attend(c, c.q, query, head, of(c.k), of(c.v));
      const at::Tensor own = c.own_queries.defined() ? c.own_queries : c.q;
      const auto keys = mixed(c.exact.k, exact_k, c.stored.k_stored);
      const Row other =
          Attend(c, own, query, head, keys, mixed(c.exact.v, exact_v, c.stored.v_stored));
      const Row true_values = Attend(c, own, query, head, keys, of(c.v));
      double kl = 0;
      for (size_t t = 0; t < row.p.size(); ++t) kl += row.p[t] * std::log(row.p[t] / other.p[t]);
      if (!c.sinks.empty()) kl += row.sink_p * std::log(row.sink_p / other.sink_p);
      const auto near = [&](const at::Tensor& found, double expected) {
        EXPECT_NEAR(number(found, head, query), expected, 1e-10 * (1 + std::abs(expected)))
            << "query " << query << ", head " << head;
      };
      near(errors.kl, kl);
      near(errors.output_error_sq, Distance(other.output, row.output));
      near(errors.logit_error_sq, Distance(other.logits, row.logits));
      near(errors.k_term_sq, Distance(true_values.output, row.output));
      near(errors.v_term_sq, Distance(other.output, true_values.output));
    }
  }
}

// Keys in blocks of 128 behind 32 sinks, values in windows.
TEST(RowComparison, KeysAndValuesAreExactByRulesOfTheirOwn) {
  at::manual_seed(1);
  Case c;
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
  Case c;
  c.exact = {ExactUntilBlocksFill(4, 64, 32), ExactInWindows({8, 50})};
  c.stored.k = Random(kKvHeads, kDim);
  c.stored.v = Random(kKvHeads, kValueDim);
  Expect(c);
  c.own_queries = Random(kQueryHeads, kDim);
  Expect(c);
  c.stored.k = c.stored.v = at::Tensor();
  Expect(c);
}

TEST(RowComparison, SoftCapsAndSinksAreThoseOfTheLayer) {
  at::manual_seed(4);
  Case c;
  c.exact = {ExactInWindows({4, 50}), ExactInWindows({4, 50})};
  c.softcap = 0.7;
  Expect(c);
  c.sinks = {0.5F, -1, 3, 0};
  Expect(c);
  c.softcap = 0;
  Expect(c);
}

// Logits that are off by more than e^x can hold, beside such that hardly differ.
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

// Several rules at once are each rule alone.
TEST(RowComparison, OneResultForEachRule) {
  at::manual_seed(3);
  const Case c;
  const AttentionSpec spec = Spec({});
  RowComparison comparison(spec, c.k, c.v, at::kDouble);
  comparison.SetRows({at::arange(kTokens), c.q});
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
