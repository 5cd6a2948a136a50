// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/attention_rule.h"

#include <algorithm>
#include <cmath>

#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int64_t kTileTokens = 64;

}  // namespace

int64_t FirstVisibleKey(const AttentionRule& rule, int64_t query) {
  return rule.window > 0 ? std::max<int64_t>(0, query - rule.window + 1) : 0;
}

int64_t NumQueryTiles(int64_t tokens) { return (tokens + kTileTokens - 1) / kTileTokens; }

QueryTile QueryTileAt(int64_t tile, int64_t tokens) {
  const int64_t first = tile * kTileTokens;
  OSCAR_CHECK(0 <= first && first < tokens);
  return {first, std::min(kTileTokens, tokens - first)};
}

Matrix TileLogits(const Matrix& queries, const Matrix& keys, const AttentionRule& rule,
                  const QueryTile& tile) {
  OSCAR_CHECK_EQ(queries.rows(), keys.rows());
  OSCAR_CHECK_LT(0.0, rule.scale);
  Matrix logits =
      keys.leftCols(tile.num_keys()).transpose() * queries.middleCols(tile.first, tile.count);
  logits *= rule.scale;
  return logits;
}

Vector SoftmaxTile(const AttentionRule& rule, const QueryTile& tile, Matrix& logits) {
  Vector log_sum_exp(tile.count);
  for (int64_t j = 0; j < tile.count; ++j) {
    const int64_t query = tile.first + j;
    const int64_t first_key = FirstVisibleKey(rule, query);
    auto column = logits.col(j);
    column.head(first_key).setZero();
    column.tail(tile.num_keys() - query - 1).setZero();
    auto visible = column.segment(first_key, query - first_key + 1);
    const double max = visible.maxCoeff();
    double sum = 0;
    for (const double logit : visible) sum += std::exp(logit - max);
    log_sum_exp[j] = max + std::log(sum);
    for (double& logit : visible) logit = std::exp(logit - max) / sum;
  }
  return log_sum_exp;
}

}  // namespace oscar
