// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/scalar_attention_kl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/matrix.h"

namespace oscar {
namespace {

Matrix Columns(std::span<const double> rows, int64_t dim, int64_t tokens, const char* name,
               std::string_view what) {
  OSCAR_CHECK_EQ(static_cast<int64_t>(rows.size()), dim * tokens);
  Matrix columns = Eigen::Map<const Matrix>(rows.data(), dim, tokens);
  if (!columns.allFinite()) {
    throw NumericalError(
        fmt::format("{}: {} of [{} tokens, {}] holds NaN or Inf", what, name, tokens, dim));
  }
  return columns;
}

// Returns p (e^x - 1 - x) with x = log p^ - log p. For large x, e^x overflows, so p e^x is computed
// as p^, which is at most 1.
double KlTerm(double log_p, double log_p_hat) {
  const double p = std::exp(log_p);
  const double x = log_p_hat - log_p;
  if (x > 1) return std::exp(log_p_hat) - p - p * x;
  return p * (std::expm1(x) - x);
}

// The keys of [first, query] that `windows` keep exact, as two disjoint ranges [begin, end).
struct ExactKeys {
  std::pair<int64_t, int64_t> sink, recent;
};

ExactKeys ExactKeysOf(const CacheWindows& windows, int64_t first, int64_t query) {
  const int64_t sink_end = std::clamp(windows.sink, first, query + 1);
  const int64_t recent_begin = std::clamp(query + 1 - windows.recent, sink_end, query + 1);
  return {{first, sink_end}, {recent_begin, query + 1}};
}

// Copies the entries of each query's exact keys; with kMove, also sets them to zero in `from`.
template <bool kMove>
void TakeExact(const AttentionRule& rule, const CacheWindows& windows, const QueryTile& tile,
               std::conditional_t<kMove, Matrix&, const Matrix&> from, Matrix& to) {
  for (int64_t j = 0; j < tile.count; ++j) {
    const int64_t query = tile.first + j;
    const ExactKeys exact = ExactKeysOf(windows, FirstVisibleKey(rule, query), query);
    for (const auto& [begin, end] : {exact.sink, exact.recent}) {
      to.col(j).segment(begin, end - begin) = from.col(j).segment(begin, end - begin);
      if constexpr (kMove) from.col(j).segment(begin, end - begin).setZero();
    }
  }
}

double SquaredRatio(double error_sq, double reference_sq) {
  return error_sq == 0 ? 0 : std::sqrt(error_sq / reference_sq);
}

}  // namespace

double KlDivergence(std::span<const double> log_p, std::span<const double> log_p_hat) {
  OSCAR_CHECK_EQ(log_p.size(), log_p_hat.size());
  double kl = 0;
  for (size_t i = 0; i < log_p.size(); ++i) kl += KlTerm(log_p[i], log_p_hat[i]);
  return kl;
}

AttentionError CompareAttention(const AttentionOperands& operands, const AttentionRule& rule,
                                const CacheWindows& windows, std::string_view what) {
  OSCAR_CHECK(windows.sink >= 0 && windows.recent >= 0);
  const int64_t tokens = operands.tokens;
  const Matrix q = Columns(operands.q, operands.head_dim, tokens, "q", what);
  const Matrix k = Columns(operands.k, operands.head_dim, tokens, "k", what);
  const Matrix k_hat = Columns(operands.k_hat, operands.head_dim, tokens, "k^", what);
  const Matrix v = Columns(operands.v, operands.v_head_dim, tokens, "v", what);
  const Matrix v_hat = Columns(operands.v_hat, operands.v_head_dim, tokens, "v^", what);

  AttentionError error;
  for (int64_t index = 0; index < NumQueryTiles(tokens); ++index) {
    const QueryTile tile = QueryTileAt(index, tokens);
    const int64_t num_keys = tile.num_keys();
    const Matrix logits = TileLogits(q, k, rule, tile);
    Matrix logits_hat = TileLogits(q, k_hat, rule, tile);
    TakeExact<false>(rule, windows, tile, logits, logits_hat);
    Matrix p = logits;
    Matrix p_hat = logits_hat;
    const Vector lse = SoftmaxTile(rule, tile, p);
    const Vector lse_hat = SoftmaxTile(rule, tile, p_hat);
    Matrix p_hat_exact = Matrix::Zero(num_keys, tile.count);
    TakeExact<true>(rule, windows, tile, p_hat, p_hat_exact);
    const Matrix output = v.leftCols(num_keys) * p;
    const Matrix output_hat = v.leftCols(num_keys) * p_hat_exact + v_hat.leftCols(num_keys) * p_hat;

    for (int64_t j = 0; j < tile.count; ++j) {
      const int64_t query = tile.first + j;
      double kl = 0;
      for (int64_t t = FirstVisibleKey(rule, query); t <= query; ++t) {
        kl += KlTerm(logits(t, j) - lse[j], logits_hat(t, j) - lse_hat[j]);
        const double logit_error = logits_hat(t, j) - logits(t, j);
        error.logit_error_sq += logit_error * logit_error;
        error.logit_sq += logits(t, j) * logits(t, j);
        ++error.pairs;
      }
      const double output_error_sq = (output_hat.col(j) - output.col(j)).squaredNorm();
      const double output_sq = output.col(j).squaredNorm();
      ++error.rows;
      error.kl_sum += kl;
      error.kl_max = std::max(error.kl_max, kl);
      error.output_error_sq += output_error_sq;
      error.output_sq += output_sq;
      if (query >= windows.sink + windows.recent) {
        ++error.rows_beyond;
        error.kl_sum_beyond += kl;
        error.output_error_sq_beyond += output_error_sq;
        error.output_sq_beyond += output_sq;
      }
    }
  }
  if (!std::isfinite(error.kl_sum) || !std::isfinite(error.output_error_sq)) {
    throw NumericalError(fmt::format("{}: logits or outputs overflow float64", what));
  }
  return error;
}

void AttentionError::Merge(const AttentionError& other) {
  rows += other.rows;
  rows_beyond += other.rows_beyond;
  kl_sum += other.kl_sum;
  kl_sum_beyond += other.kl_sum_beyond;
  kl_max = std::max(kl_max, other.kl_max);
  output_error_sq += other.output_error_sq;
  output_sq += other.output_sq;
  output_error_sq_beyond += other.output_error_sq_beyond;
  output_sq_beyond += other.output_sq_beyond;
  pairs += other.pairs;
  logit_error_sq += other.logit_error_sq;
  logit_sq += other.logit_sq;
}

double AttentionError::kl_mean() const {
  OSCAR_CHECK_LT(0, rows);
  return kl_sum / static_cast<double>(rows);
}

std::optional<double> AttentionError::kl_mean_beyond() const {
  if (rows_beyond == 0) return std::nullopt;
  return kl_sum_beyond / static_cast<double>(rows_beyond);
}

double AttentionError::output_rel_error() const { return SquaredRatio(output_error_sq, output_sq); }

std::optional<double> AttentionError::output_rel_error_beyond() const {
  if (rows_beyond == 0) return std::nullopt;
  return SquaredRatio(output_error_sq_beyond, output_sq_beyond);
}

double AttentionError::logit_mse() const {
  OSCAR_CHECK_LT(0, pairs);
  return logit_error_sq / static_cast<double>(pairs);
}

double AttentionError::logit_rel_error() const { return SquaredRatio(logit_error_sq, logit_sq); }

}  // namespace oscar
