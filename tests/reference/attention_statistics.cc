// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/attention_statistics.h"

#include <fmt/format.h>

#include <numeric>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns one head of a [tokens, heads, dim] tensor as [dim, tokens].
Matrix HeadColumns(std::span<const double> tensor, int64_t heads, int64_t dim, int64_t head) {
  const int64_t tokens = static_cast<int64_t>(tensor.size()) / (heads * dim);
  return Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(tensor.data() + head * dim, dim, tokens,
                                                           Eigen::OuterStride<>(heads * dim));
}

// Returns the sum of w x x^T over the columns x, a symmetric matrix.
Matrix SecondMoment(const Matrix& columns, const Vector& weights) {
  return columns * weights.asDiagonal() * columns.transpose();
}

Matrix SecondMoment(const Matrix& columns) { return columns * columns.transpose(); }

// Adds one query head over one sequence to the sum of o o^T. values: [v_head_dim, tokens];
// squared_scores [tokens] gains the sum of S_it^2 over the queries i.
void AddAttention(const Matrix& queries, const Matrix& keys, const Matrix& values,
                  const AttentionRule& rule, Matrix& outputs, Eigen::Ref<Vector> squared_scores) {
  const int64_t tokens = queries.cols();
  for (int64_t index = 0; index < NumQueryTiles(tokens); ++index) {
    const QueryTile tile = QueryTileAt(index, tokens);
    Matrix scores = TileLogits(queries, keys, rule, tile);
    SoftmaxTile(rule, tile, scores);
    outputs += SecondMoment(values.leftCols(tile.num_keys()) * scores);
    squared_scores.head(tile.num_keys()) += scores.rowwise().squaredNorm();
  }
}

// Returns k_t C k_t^T of every token, scaled to mean 1.
Vector QueryEnergyWeights(const Matrix& keys, const Matrix& query_covariance,
                          std::string_view what) {
  const Vector energy = keys.cwiseProduct(query_covariance * keys).colwise().sum();
  const double sum = energy.sum();
  if (!(sum > 0)) {
    throw NumericalError(
        fmt::format("{}: the token weights k C_Q k^T of {} tokens sum to {:g}, expected more than "
                    "0: a dead head",
                    what, keys.cols(), sum));
  }
  return energy * (static_cast<double>(keys.cols()) / sum);
}

}  // namespace

std::vector<HeadStatistics> AttentionStatistics(const AttentionShape& shape,
                                                std::span<const double> q,
                                                std::span<const double> k,
                                                std::span<const double> v,
                                                std::span<const int64_t> sequence_lengths,
                                                const AttentionRule& rule, std::string_view what) {
  const int64_t gqa_ratio = shape.gqa_ratio();
  const auto tokens = static_cast<double>(shape.tokens), ratio = static_cast<double>(gqa_ratio);
  OSCAR_CHECK_EQ(shape.num_q_heads, gqa_ratio * shape.num_kv_heads);
  OSCAR_CHECK_EQ(std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0}),
                 shape.tokens);
  std::vector<HeadStatistics> heads;
  for (int64_t h = 0; h < shape.num_kv_heads; ++h) {
    const Matrix keys = HeadColumns(k, shape.num_kv_heads, shape.head_dim, h);
    const Matrix values = HeadColumns(v, shape.num_kv_heads, shape.v_head_dim, h);
    Matrix query_sum = Matrix::Zero(shape.head_dim, shape.head_dim);
    Matrix output_sum = Matrix::Zero(shape.v_head_dim, shape.v_head_dim);
    Vector squared_scores = Vector::Zero(shape.tokens);
    for (int64_t g = 0; g < gqa_ratio; ++g) {
      const Matrix queries = HeadColumns(q, shape.num_q_heads, shape.head_dim, h * gqa_ratio + g);
      query_sum += SecondMoment(queries);
      int64_t start = 0;
      for (const int64_t length : sequence_lengths) {
        AddAttention(queries.middleCols(start, length), keys.middleCols(start, length),
                     values.middleCols(start, length), rule, output_sum,
                     squared_scores.segment(start, length));
        start += length;
      }
    }
    HeadStatistics& head = heads.emplace_back();
    head.query_covariance = query_sum / (tokens * ratio);
    head.key_mean = keys.rowwise().mean();
    head.key_covariance = SecondMoment(keys) / tokens;
    head.value_covariance = SecondMoment(values) / tokens;
    head.attention_output = output_sum / (tokens * ratio);
    const Vector energy =
        QueryEnergyWeights(keys, head.query_covariance, fmt::format("{}, KV head {}", what, h));
    head.diagonal = SecondMoment(values, energy) / tokens;
    head.score_diagonal = SecondMoment(values, squared_scores / ratio) / tokens;
  }
  return heads;
}

}  // namespace oscar
