// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Second moments of rows, in float64. These are uncentred moments, x^T x / count, as OSCAR defines
// its covariances; the mean is kept beside them and never subtracted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "linalg/matrix.h"

namespace oscar {

struct Covariance {
  Matrix second_moment;  // [dim, dim], sum of x^T x / count, exactly symmetric
  Vector mean;           // [dim]
  int64_t count = 0;     // rows: tokens, or tokens x query heads of a group
};

// Rows are added one after the other, so the result depends on their order alone and not on how
// they were split over calls of Add. Merge() adds finished sums: (a + b) + c may differ from
// a + (b + c) in the last bit, so merge in one fixed order.
class CovarianceAccumulator {
 public:
  explicit CovarianceAccumulator(int64_t dim);

  // rows: row-major [n, dim]. row_weights: [n], or empty for 1. A weight multiplies the row's
  // x^T x and x; the count stays the number of rows, so weights are meant to have mean 1.
  void Add(std::span<const float> rows, std::span<const double> row_weights = {});
  void Add(std::span<const double> rows, std::span<const double> row_weights = {});

  // Adds sums made elsewhere, for example on a GPU: second_moment_sum [dim, dim], of which both
  // triangles are used; sum [dim]; count in rows.
  void AddSums(MatrixRef second_moment_sum, VectorRef sum, int64_t count);
  void Merge(const CovarianceAccumulator& other);

  int64_t dim() const { return sum_.size(); }
  int64_t count() const { return count_; }    // rows
  Matrix second_moment_sum() const;           // [dim, dim], exactly symmetric
  const Vector& sum() const { return sum_; }  // [dim]

  // Throws NumericalError, naming `what`, if there are no rows or a sum is not finite.
  Covariance Finish(std::string_view what) const;

 private:
  template <typename T>
  void AddRows(std::span<const T> rows, std::span<const double> row_weights);

  Matrix upper_;  // [dim, dim] sum of x^T x; only the upper triangle is used
  Vector sum_;    // [dim]
  int64_t count_ = 0;
};

}  // namespace oscar
