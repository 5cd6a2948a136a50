// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Closed forms and the attention-level invariants.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/error.h"
#include "tests/linalg/random_values.h"
#include "tests/reference/scalar_attention_kl.h"

namespace oscar {
namespace {

constexpr int64_t kKlDim = 8;
constexpr int64_t kValueDim = 6;

struct Head {
  int64_t tokens;
  std::vector<double> q, k, k_hat, v, v_hat;
  AttentionOperands operands() const { return {tokens, kKlDim, kValueDim, q, k, k_hat, v, v_hat}; }
};

Head RandomHead(int64_t tokens, double noise = 0.3) {
  Head head{tokens, RandomRows(tokens, kKlDim, 1), RandomRows(tokens, kKlDim, 2), {}, {}, {}};
  head.v = RandomRows(tokens, kValueDim, 3);
  head.k_hat = RandomRows(tokens, kKlDim, 4, noise);
  head.v_hat = RandomRows(tokens, kValueDim, 5, noise);
  for (size_t i = 0; i < head.k.size(); ++i) head.k_hat[i] += head.k[i];
  for (size_t i = 0; i < head.v.size(); ++i) head.v_hat[i] += head.v[i];
  return head;
}

AttentionError Compare(const Head& head, const AttentionRule& rule = {.scale = 0.5},
                       const CacheWindows& windows = {}) {
  return CompareAttention(head.operands(), rule, windows, "test");
}

// The definitions written out with explicit probabilities.
AttentionError Naive(const Head& head, const AttentionRule& rule, const CacheWindows& windows) {
  AttentionError e;
  for (int64_t i = 0; i < head.tokens; ++i) {
    std::vector<long double> p(head.tokens, 0), p_hat(head.tokens, 0);
    long double sum = 0, sum_hat = 0;
    for (int64_t t = 0; t <= i; ++t) {
      if (rule.window > 0 && i - t >= rule.window) continue;
      const bool exact = t < windows.sink || i - t < windows.recent;
      long double s = 0, s_hat = 0;
      for (int64_t c = 0; c < kKlDim; ++c) {
        s += head.q[i * kKlDim + c] * static_cast<long double>(head.k[t * kKlDim + c]);
        s_hat += head.q[i * kKlDim + c] *
                 static_cast<long double>((exact ? head.k : head.k_hat)[t * kKlDim + c]);
      }
      p[t] = std::exp(rule.scale * s);
      p_hat[t] = std::exp(rule.scale * s_hat);
      sum += p[t];
      sum_hat += p_hat[t];
      e.logit_error_sq += static_cast<double>((s_hat - s) * (s_hat - s)) * rule.scale * rule.scale;
      ++e.pairs;
    }
    long double kl = 0;
    std::vector<long double> difference(kValueDim, 0), output(kValueDim, 0);
    for (int64_t t = 0; t <= i; ++t) {
      if (p[t] == 0) continue;
      const bool exact = t < windows.sink || i - t < windows.recent;
      kl += p[t] / sum * std::log((p[t] / sum) / (p_hat[t] / sum_hat));
      for (int64_t c = 0; c < kValueDim; ++c) {
        const long double v = head.v[t * kValueDim + c];
        const long double v_hat = (exact ? head.v : head.v_hat)[t * kValueDim + c];
        output[c] += p[t] / sum * v;
        difference[c] += p_hat[t] / sum_hat * v_hat - p[t] / sum * v;
      }
    }
    double error_sq = 0, output_sq = 0;
    for (int64_t c = 0; c < kValueDim; ++c) {
      error_sq += static_cast<double>(difference[c] * difference[c]);
      output_sq += static_cast<double>(output[c] * output[c]);
    }
    e.rows++;
    e.kl_sum += static_cast<double>(kl);
    e.kl_max = std::max(e.kl_max, static_cast<double>(kl));
    e.output_error_sq += error_sq;
    e.output_sq += output_sq;
    if (i >= windows.sink + windows.recent) {
      e.rows_beyond++;
      e.kl_sum_beyond += static_cast<double>(kl);
      e.output_error_sq_beyond += error_sq;
      e.output_sq_beyond += output_sq;
    }
  }
  return e;
}

void ExpectEqual(const AttentionError& a, const AttentionError& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.rows_beyond, b.rows_beyond);
  EXPECT_EQ(a.pairs, b.pairs);
  EXPECT_NEAR(a.kl_mean(), b.kl_mean(), 1e-13);
  EXPECT_NEAR(a.kl_sum_beyond, b.kl_sum_beyond, 1e-11);
  EXPECT_NEAR(a.kl_max, b.kl_max, 1e-13);
  EXPECT_NEAR(a.output_rel_error(), b.output_rel_error(), 1e-13);
  EXPECT_NEAR(a.output_error_sq_beyond, b.output_error_sq_beyond, 1e-11);
  EXPECT_NEAR(a.output_sq_beyond, b.output_sq_beyond, 1e-11);
  EXPECT_NEAR(a.logit_mse(), b.logit_mse(), 1e-13);
}

TEST(AttentionKl, IsItsDefinition) {
  const Head head = RandomHead(150);
  for (const int64_t window : {0, 1, 20}) {
    for (const CacheWindows windows : {CacheWindows{}, CacheWindows{8, 0}, CacheWindows{0, 16},
                                       CacheWindows{8, 16}, CacheWindows{70, 70}}) {
      const AttentionRule rule{.scale = 0.5, .window = window};
      SCOPED_TRACE(testing::Message() << "window " << window << ", sink " << windows.sink);
      ExpectEqual(Compare(head, rule, windows), Naive(head, rule, windows));
    }
  }
}

TEST(AttentionKl, TwoKeysByHand) {
  const double half = std::log(0.5);
  const double log_p[] = {half, half};
  const double log_p_hat[] = {std::log(0.75), std::log(0.25)};
  EXPECT_NEAR(KlDivergence(log_p, log_p_hat), 0.143841, 5e-7);
  EXPECT_NEAR(KlDivergence(log_p, log_p_hat), 0.5 * std::log(4.0 / 3), 1e-15);
  EXPECT_EQ(KlDivergence(log_p, log_p), 0);
}

TEST(AttentionKl, TinyDivergencesKeepTheirDigits) {  // KL ~ e^2 / 8 for logits 0 and e
  for (const double e : {1e-3, 1e-6, 1e-9}) {
    const double log_sum = std::log1p(std::exp(e));
    const double log_p[] = {-std::log(2.0), -std::log(2.0)};
    const double log_p_hat[] = {-log_sum, e - log_sum};
    EXPECT_NEAR(KlDivergence(log_p, log_p_hat) / (e * e / 8), 1, 1e-5) << e;
  }
}

TEST(AttentionKl, FarApartDistributionsStayFinite) {
  const double log_p[] = {0, -2000};      // the second probability underflows to 0
  const double log_p_hat[] = {-2000, 0};  // and the first here
  EXPECT_NEAR(KlDivergence(log_p, log_p_hat), 2000, 1e-9);
  Head head = RandomHead(40);
  for (double& x : head.k_hat) x *= -300;
  const AttentionError error = Compare(head);
  EXPECT_TRUE(std::isfinite(error.kl_mean()));
  EXPECT_GT(error.kl_mean(), 10);
}

TEST(AttentionKl, IsNeverNegative) {
  for (const double noise : {0.0, 1e-12, 1e-8, 1e-3}) {
    const AttentionError error = Compare(RandomHead(100, noise));
    EXPECT_GE(error.kl_sum, 0);
  }
}

TEST(AttentionKl, WithoutQuantizationNothingChanges) {
  Head head = RandomHead(130);
  head.k_hat = head.k;
  head.v_hat = head.v;
  const AttentionError error = Compare(head);
  EXPECT_EQ(error.kl_max, 0);
  EXPECT_EQ(error.logit_mse(), 0);
  EXPECT_LE(error.output_rel_error(), 1e-15);
}

TEST(AttentionKl, AConstantVectorOnAllKeysChangesNothing) {
  Head head = RandomHead(130);
  head.k_hat = head.k;
  head.v_hat = head.v;
  for (size_t i = 0; i < head.k_hat.size(); ++i) {
    head.k_hat[i] += 3 + static_cast<double>(i % kKlDim);
  }
  const AttentionError error = Compare(head);
  EXPECT_LE(error.kl_max, 1e-13);
  EXPECT_LE(error.output_rel_error(), 1e-13);
  EXPECT_GT(error.logit_mse(), 1);
}

TEST(AttentionKl, InsideTheWindowsErrorsAreExactlyZero) {
  const Head head = RandomHead(130);
  for (const CacheWindows windows :
       {CacheWindows{130, 0}, CacheWindows{0, 130}, CacheWindows{64, 66}, CacheWindows{500, 500}}) {
    const AttentionError error = Compare(head, {.scale = 0.5}, windows);
    EXPECT_EQ(error.kl_max, 0);
    EXPECT_EQ(error.output_rel_error(), 0);
    EXPECT_EQ(error.logit_mse(), 0);
    EXPECT_EQ(error.kl_mean_beyond(), std::nullopt);
    EXPECT_EQ(error.output_rel_error_beyond(), std::nullopt);
  }
}

TEST(AttentionKl, ValueRotationIsLinear) {  // S (V R) R^T = S V
  Head head = RandomHead(100);
  head.k_hat = head.k;
  const Matrix r = RandomOrthogonal(kValueDim, 9);
  const Eigen::Map<const Matrix> columns(head.v.data(), kValueDim, head.tokens);
  const Matrix back = r * (r.transpose() * columns);
  head.v_hat.assign(back.data(), back.data() + back.size());
  EXPECT_LE(Compare(head).output_rel_error(), 1e-14);
}

TEST(AttentionKl, LaterTokensDoNotTouchEarlierRows) {
  const Head whole = RandomHead(100);
  Head prefix = whole;
  prefix.tokens = 99;
  for (auto* rows : {&prefix.q, &prefix.k, &prefix.k_hat}) rows->resize(99 * kKlDim);
  for (auto* rows : {&prefix.v, &prefix.v_hat}) rows->resize(99 * kValueDim);
  const AttentionRule rule{.scale = 0.5};
  const double last_row = Naive(whole, rule, {}).kl_sum - Naive(prefix, rule, {}).kl_sum;
  EXPECT_NEAR(Compare(whole, rule).kl_sum - Compare(prefix, rule).kl_sum, last_row, 1e-12);
}

TEST(AttentionKl, MergeTakesMeansOverAllRows) {
  const AttentionError a = Compare(RandomHead(30, 0.1), {.scale = 0.5}, {4, 4});
  const AttentionError b = Compare(RandomHead(90, 0.6), {.scale = 0.5}, {4, 4});
  AttentionError merged = a;
  merged.Merge(b);
  EXPECT_EQ(merged.rows, 120);
  EXPECT_NEAR(merged.kl_mean(), (30 * a.kl_mean() + 90 * b.kl_mean()) / 120, 1e-15);
  EXPECT_NEAR(*merged.kl_mean_beyond(), (22 * *a.kl_mean_beyond() + 82 * *b.kl_mean_beyond()) / 104,
              1e-15);
  EXPECT_EQ(merged.kl_max, std::max(a.kl_max, b.kl_max));
  EXPECT_NEAR(merged.output_rel_error(),
              std::sqrt((a.output_error_sq + b.output_error_sq) / (a.output_sq + b.output_sq)),
              1e-15);
}

TEST(AttentionKl, NonFiniteOperandsAreErrorsByName) {
  Head head = RandomHead(20);
  head.v_hat[3] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(Compare(head), NumericalError);
  head = RandomHead(20);
  head.q[3] = NAN;
  EXPECT_THROW(Compare(head), NumericalError);
}

}  // namespace
}  // namespace oscar
