// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares softmax rows and log-sum-exp with linalg's scalar attention in float64.
#include "capture/model/run/attention_scores.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/reference/attention_rule.h"

namespace oscar {
namespace {

// Returns one head as a [head_dim, tokens] float64 matrix.
Matrix Head(const at::Tensor& x, int64_t head) {
  const at::Tensor own = x.select(1, head).to(at::kDouble).contiguous();
  return Eigen::Map<const Matrix>(own.const_data_ptr<double>(), x.size(2), x.size(0));
}

void ExpectScores(const AttentionSpec& spec, int64_t num_tokens, at::ScalarType dtype,
                  const std::vector<int64_t>& rows) {
  const at::Tensor q = at::randn({num_tokens, spec.num_q_heads, spec.head_dim}).to(dtype);
  const at::Tensor k = at::randn({num_tokens, spec.num_kv_heads, spec.head_dim}).to(dtype);
  const at::Tensor lse = LogSumExpRows(spec, q, k), scores = SoftmaxRows(spec, q, k, rows);
  ASSERT_EQ(lse.sizes(), (at::IntArrayRef{num_tokens, spec.num_q_heads}));
  ASSERT_EQ(scores.sizes(),
            (at::IntArrayRef{static_cast<int64_t>(rows.size()), spec.num_q_heads, num_tokens}));
  const AttentionRule rule{spec.scale, spec.window.value_or(0)};
  const auto found_lse = lse.accessor<float, 2>();
  const auto found = scores.accessor<float, 3>();
  double lse_error = 0, score_error = 0;
  for (int64_t head = 0; head < spec.num_q_heads; ++head) {
    const Matrix queries = Head(q, head), keys = Head(k, head / spec.gqa_ratio());
    for (int64_t t = 0; t < NumQueryTiles(num_tokens); ++t) {
      const QueryTile tile = QueryTileAt(t, num_tokens);
      Matrix expected = TileLogits(queries, keys, rule, tile);
      const Vector expected_lse = SoftmaxTile(rule, tile, expected);
      for (int64_t i = 0; i < tile.count; ++i) {
        const int64_t token = tile.first + i;
        lse_error = std::max(lse_error, std::abs(found_lse[token][head] - expected_lse[i]));
        const auto row = std::find(rows.begin(), rows.end(), token);
        if (row == rows.end()) continue;
        for (int64_t key = 0; key < num_tokens; ++key) {
          const double p = key < tile.num_keys() ? expected(key, i) : 0;
          const float s = found[row - rows.begin()][head][key];
          score_error = std::max(score_error, std::abs(s - p));
          if (p == 0) {
            EXPECT_EQ(s, 0) << "token " << token << " sees " << key;
          }
        }
      }
    }
  }
  EXPECT_LT(lse_error, 1e-5);
  EXPECT_LT(score_error, 1e-6);
}

TEST(AttentionScores, AreTheScalarSoftmaxForEveryWindow) {
  AttentionSpec spec;
  spec.num_q_heads = 6;
  spec.num_kv_heads = 2;
  spec.head_dim = spec.v_head_dim = 16;
  spec.scale = 0.3;
  for (const int64_t window : {0, 1, 7, 149, 150, 1000}) {
    spec.window = window == 0 ? std::nullopt : std::optional(window);
    ExpectScores(spec, 150, at::kFloat, {0, 1, 5, 80, 148, 149});
  }
}

TEST(AttentionScores, OfRoundedOperandsAreStillFloat32) {
  AttentionSpec spec;
  spec.num_q_heads = spec.num_kv_heads = 2;
  spec.head_dim = spec.v_head_dim = 8;
  spec.scale = 1;
  ExpectScores(spec, 40, at::kBFloat16, {39});
  ExpectScores(spec, 1, at::kHalf, {0});
}

// A piece of 64 MiB holds the logits of 2796 rows here, so 6000 tokens need three pieces.
TEST(AttentionScores, SeveralPieces) {
  AttentionSpec spec;
  spec.num_q_heads = spec.num_kv_heads = 1;
  spec.head_dim = spec.v_head_dim = 2;
  spec.scale = 1;
  spec.window = 5000;
  ExpectScores(spec, 6000, at::kFloat, {0, 5999});
}

}  // namespace
}  // namespace oscar
