// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/attention_statistics.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "tests/reference/covariance.h"

namespace oscar {
namespace {

// One head of a [tokens, heads, dim] tensor as float64 [dim, tokens].
template <typename T>
Matrix HeadColumns(std::span<const T> tensor, int64_t heads, int64_t dim, int64_t head) {
  using Strided = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>, 0,
                             Eigen::OuterStride<Eigen::Dynamic>>;
  const int64_t tokens = static_cast<int64_t>(tensor.size()) / (heads * dim);
  return Strided(tensor.data() + head * dim, dim, tokens, Eigen::OuterStride<>(heads * dim))
      .template cast<double>();
}

// The bytes of [dim, tokens] as rows [tokens, dim].
std::span<const double> Rows(const Matrix& columns) {
  return {columns.data(), static_cast<size_t>(columns.size())};
}

Covariance CovarianceOf(const Matrix& columns, std::string_view what,
                        std::span<const double> weights = {}) {
  CovarianceAccumulator accumulator(columns.rows());
  accumulator.Add(Rows(columns), weights);
  return accumulator.Finish(what);
}

// Adds one query head over one sequence. values: [v_head_dim, tokens]; squared_scores [tokens]
// gains the sum of S_it^2 over the queries i.
void AddAttention(const Matrix& queries, const Matrix& keys, const Matrix& values,
                  const AttentionRule& rule, CovarianceAccumulator& outputs,
                  Eigen::Ref<Vector> squared_scores) {
  const int64_t tokens = queries.cols();
  for (int64_t index = 0; index < NumQueryTiles(tokens); ++index) {
    const QueryTile tile = QueryTileAt(index, tokens);
    Matrix scores = TileLogits(queries, keys, rule, tile);
    SoftmaxTile(rule, tile, scores);
    const Matrix output = values.leftCols(tile.num_keys()) * scores;
    outputs.Add(Rows(output));
    squared_scores.head(tile.num_keys()) += scores.rowwise().squaredNorm();
  }
}

// k_t C k_t^T of every token, scaled to mean 1.
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

template <typename T>
std::vector<HeadStatistics> Statistics(const AttentionShape& shape, std::span<const T> q,
                                       std::span<const T> k, std::span<const T> v,
                                       std::span<const int64_t> sequence_lengths,
                                       const AttentionRule& rule, std::string_view what) {
  const int64_t gqa_ratio = shape.gqa_ratio();
  OSCAR_CHECK_EQ(shape.num_q_heads, gqa_ratio * shape.num_kv_heads);
  OSCAR_CHECK_EQ(static_cast<int64_t>(q.size()), shape.tokens * shape.num_q_heads * shape.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(k.size()),
                 shape.tokens * shape.num_kv_heads * shape.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(v.size()),
                 shape.tokens * shape.num_kv_heads * shape.v_head_dim);
  OSCAR_CHECK_EQ(std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0}),
                 shape.tokens);

  std::vector<HeadStatistics> heads;
  for (int64_t h = 0; h < shape.num_kv_heads; ++h) {
    const std::string name = fmt::format("{}, KV head {}", what, h);
    const Matrix keys = HeadColumns(k, shape.num_kv_heads, shape.head_dim, h);
    const Matrix values = HeadColumns(v, shape.num_kv_heads, shape.v_head_dim, h);

    CovarianceAccumulator query_sums(shape.head_dim);
    CovarianceAccumulator output_sums(shape.v_head_dim);
    Vector squared_scores = Vector::Zero(shape.tokens);
    for (int64_t g = 0; g < gqa_ratio; ++g) {
      const Matrix queries = HeadColumns(q, shape.num_q_heads, shape.head_dim, h * gqa_ratio + g);
      query_sums.Add(Rows(queries));
      int64_t start = 0;
      for (const int64_t length : sequence_lengths) {
        OSCAR_CHECK_LT(0, length);
        AddAttention(queries.middleCols(start, length), keys.middleCols(start, length),
                     values.middleCols(start, length), rule, output_sums,
                     squared_scores.segment(start, length));
        start += length;
      }
    }

    HeadStatistics& head = heads.emplace_back();
    head.query_covariance = query_sums.Finish(name + ", query covariance").second_moment;
    Covariance key = CovarianceOf(keys, name + ", key covariance");
    head.key_mean = std::move(key.mean);
    head.key_covariance = std::move(key.second_moment);
    head.value_covariance = CovarianceOf(values, name + ", value covariance").second_moment;
    head.attention_output = output_sums.Finish(name + ", attention output").second_moment;
    const Vector energy = QueryEnergyWeights(keys, head.query_covariance, name);
    head.diagonal =
        CovarianceOf(values, name + ", diagonal target", {energy.data(), size_t(energy.size())})
            .second_moment;
    squared_scores /= static_cast<double>(gqa_ratio);
    head.score_diagonal = CovarianceOf(values, name + ", score diagonal target",
                                       {squared_scores.data(), size_t(squared_scores.size())})
                              .second_moment;
  }
  return heads;
}

}  // namespace

std::vector<HeadStatistics> AttentionStatistics(const AttentionShape& shape,
                                                std::span<const float> q, std::span<const float> k,
                                                std::span<const float> v,
                                                std::span<const int64_t> sequence_lengths,
                                                const AttentionRule& rule, std::string_view what) {
  return Statistics(shape, q, k, v, sequence_lengths, rule, what);
}

std::vector<HeadStatistics> AttentionStatistics(const AttentionShape& shape,
                                                std::span<const double> q,
                                                std::span<const double> k,
                                                std::span<const double> v,
                                                std::span<const int64_t> sequence_lengths,
                                                const AttentionRule& rule, std::string_view what) {
  return Statistics(shape, q, k, v, sequence_lengths, rule, what);
}

}  // namespace oscar
