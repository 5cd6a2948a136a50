// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/attention_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "linalg/base/error.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

struct Layer {
  AttentionShape shape;
  std::vector<double> q, k, v;
  std::vector<int64_t> lengths;
  AttentionRule rule;
};

Layer RandomLayer(std::vector<int64_t> lengths, int64_t window) {
  Layer layer;
  layer.lengths = std::move(lengths);
  layer.shape = {.tokens = std::accumulate(layer.lengths.begin(), layer.lengths.end(), int64_t{0}),
                 .num_q_heads = 6,
                 .num_kv_heads = 2,
                 .head_dim = 8,
                 .v_head_dim = 5};
  const AttentionShape& s = layer.shape;
  layer.q = RandomRows(s.tokens, s.num_q_heads * s.head_dim, 1, 1.5);
  layer.k = RandomRows(s.tokens, s.num_kv_heads * s.head_dim, 2, 1.5);
  layer.v = RandomRows(s.tokens, s.num_kv_heads * s.v_head_dim, 3);
  layer.rule = {.scale = 0.4, .window = window};
  return layer;
}

std::vector<HeadStatistics> StatisticsOf(const Layer& layer) {
  return AttentionStatistics(layer.shape, layer.q, layer.k, layer.v, layer.lengths, layer.rule,
                             "layer 0");
}

// Element [token, head, i] of a row-major tensor.
double At(const std::vector<double>& tensor, int64_t heads, int64_t dim, int64_t token,
          int64_t head, int64_t i) {
  return tensor[static_cast<size_t>((token * heads + head) * dim + i)];
}

// The definitions written out: an explicit score matrix [T, T] per query head.
Matrix Scores(const Layer& layer, int64_t q_head) {
  const AttentionShape& s = layer.shape;
  Matrix scores = Matrix::Zero(s.tokens, s.tokens);
  int64_t start = 0;
  for (const int64_t length : layer.lengths) {
    for (int64_t i = start; i < start + length; ++i) {
      double sum = 0;
      for (int64_t t = start; t <= i; ++t) {
        if (layer.rule.window > 0 && i - t >= layer.rule.window) continue;
        double dot = 0;
        for (int64_t c = 0; c < s.head_dim; ++c) {
          dot += At(layer.q, s.num_q_heads, s.head_dim, i, q_head, c) *
                 At(layer.k, s.num_kv_heads, s.head_dim, t, q_head / s.gqa_ratio(), c);
        }
        scores(i, t) = std::exp(layer.rule.scale * dot);
        sum += scores(i, t);
      }
      scores.row(i) /= sum;
    }
    start += length;
  }
  return scores;
}

Matrix RowsOfHead(const std::vector<double>& tensor, int64_t heads, int64_t dim, int64_t head,
                  int64_t tokens) {
  return Matrix::NullaryExpr(
      tokens, dim, [&](auto token, auto i) { return At(tensor, heads, dim, token, head, i); });
}

void ExpectClose(const Matrix& actual, const Matrix& expected, const char* name) {
  EXPECT_LE((actual - expected).norm() / expected.norm(), 1e-13) << name;
}

void ExpectDefinitions(const Layer& layer) {
  const AttentionShape& s = layer.shape;
  const auto tokens = static_cast<double>(s.tokens);
  const auto ratio = static_cast<double>(s.gqa_ratio());
  const std::vector<HeadStatistics> heads = StatisticsOf(layer);
  ASSERT_EQ(static_cast<int64_t>(heads.size()), s.num_kv_heads);
  for (int64_t h = 0; h < s.num_kv_heads; ++h) {
    const Matrix k = RowsOfHead(layer.k, s.num_kv_heads, s.head_dim, h, s.tokens);
    const Matrix v = RowsOfHead(layer.v, s.num_kv_heads, s.v_head_dim, h, s.tokens);
    Matrix c_q = Matrix::Zero(s.head_dim, s.head_dim);
    Matrix paper = Matrix::Zero(s.v_head_dim, s.v_head_dim);
    Vector squared_scores = Vector::Zero(s.tokens);
    for (int64_t g = h * s.gqa_ratio(); g < (h + 1) * s.gqa_ratio(); ++g) {
      const Matrix q = RowsOfHead(layer.q, s.num_q_heads, s.head_dim, g, s.tokens);
      const Matrix scores = Scores(layer, g);
      c_q += q.transpose() * q / (tokens * ratio);
      paper += v.transpose() * scores.transpose() * scores * v / (tokens * ratio);
      squared_scores += scores.colwise().squaredNorm();
    }
    const Vector energy = (k * c_q * k.transpose()).diagonal();
    const Vector weights = energy * tokens / energy.sum();
    ExpectClose(heads[h].query_covariance, c_q, "query covariance");
    ExpectClose(heads[h].key_mean, k.colwise().mean().transpose(), "key mean");
    ExpectClose(heads[h].key_covariance, k.transpose() * k / tokens, "key covariance");
    ExpectClose(heads[h].value_covariance, v.transpose() * v / tokens, "value covariance");
    ExpectClose(heads[h].attention_output, paper, "attention output");
    ExpectClose(heads[h].diagonal, v.transpose() * weights.asDiagonal() * v / tokens, "diagonal");
    ExpectClose(heads[h].score_diagonal,
                v.transpose() * squared_scores.asDiagonal() * v / (tokens * ratio),
                "score diagonal");
  }
}

TEST(AttentionStatistics, AreTheirDefinitions) { ExpectDefinitions(RandomLayer({70}, 0)); }

TEST(AttentionStatistics, SequencesDoNotSeeEachOther) {
  ExpectDefinitions(RandomLayer({3, 1, 65, 64, 20}, 0));
}

TEST(AttentionStatistics, SlidingWindow) { ExpectDefinitions(RandomLayer({90, 40}, 7)); }

TEST(AttentionStatistics, WindowOfOneAttendsToTheTokenItself) {
  const Layer layer = RandomLayer({50}, 1);
  for (const HeadStatistics& head : StatisticsOf(layer)) {
    ExpectClose(head.attention_output, head.value_covariance, "output");
    ExpectClose(head.score_diagonal, head.value_covariance, "score diagonal");
  }
}

TEST(AttentionStatistics, FloatAndDoubleInputsAgree) {
  Layer layer = RandomLayer({40}, 0);
  const std::vector<float> q(layer.q.begin(), layer.q.end());
  const std::vector<float> k(layer.k.begin(), layer.k.end());
  const std::vector<float> v(layer.v.begin(), layer.v.end());
  layer.q.assign(q.begin(), q.end());
  layer.k.assign(k.begin(), k.end());
  layer.v.assign(v.begin(), v.end());
  const auto from_float =
      AttentionStatistics(layer.shape, q, k, v, layer.lengths, layer.rule, "layer 0");
  const auto from_double = StatisticsOf(layer);
  for (size_t h = 0; h < from_double.size(); ++h) {
    EXPECT_EQ(from_float[h].query_covariance, from_double[h].query_covariance);
    EXPECT_EQ(from_float[h].attention_output, from_double[h].attention_output);
    EXPECT_EQ(from_float[h].diagonal, from_double[h].diagonal);
  }
}

TEST(AttentionStatistics, LargeLogitsDoNotOverflow) {
  Layer layer = RandomLayer({40}, 0);
  layer.rule.scale = 1e4;
  for (const HeadStatistics& head : StatisticsOf(layer))
    EXPECT_TRUE(head.attention_output.allFinite());
}

TEST(AttentionStatistics, BrokenLayersAreErrorsThatNameLayerAndHead) {
  Layer layer = RandomLayer({40}, 0);
  layer.k[8] = NAN;  // token 0, KV head 1
  try {
    StatisticsOf(layer);
    FAIL() << "accepted";
  } catch (const NumericalError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 0, KV head 1"), std::string::npos);
  }
  Layer dead = RandomLayer({40}, 0);
  std::fill(dead.k.begin(), dead.k.end(), 0);
  EXPECT_THROW(StatisticsOf(dead), NumericalError);
  EXPECT_THROW(StatisticsOf(RandomLayer({}, 0)), NumericalError);
}

}  // namespace
}  // namespace oscar
