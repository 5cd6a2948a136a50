// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/covariance.h"

#include <fmt/format.h>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {

CovarianceAccumulator::CovarianceAccumulator(int64_t dim)
    : upper_(Matrix::Zero(dim, dim)), sum_(Vector::Zero(dim)) {
  OSCAR_CHECK_LT(0, dim);
}

template <typename T>
void CovarianceAccumulator::AddRows(std::span<const T> rows, std::span<const double> row_weights) {
  const int64_t dim = sum_.size();
  const int64_t n = static_cast<int64_t>(rows.size()) / dim;
  OSCAR_CHECK_EQ(static_cast<int64_t>(rows.size()), n * dim);
  OSCAR_CHECK(row_weights.empty() || static_cast<int64_t>(row_weights.size()) == n);
  Vector x(dim);
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t i = 0; i < dim; ++i) x[i] = static_cast<double>(rows[row * dim + i]);
    const double weight = row_weights.empty() ? 1 : row_weights[row];
    for (int64_t j = 0; j < dim; ++j) {
      const double factor = weight * x[j];
      upper_.col(j).head(j + 1) += factor * x.head(j + 1);
      sum_[j] += factor;
    }
  }
  count_ += n;
}

void CovarianceAccumulator::Add(std::span<const float> rows, std::span<const double> row_weights) {
  AddRows(rows, row_weights);
}

void CovarianceAccumulator::Add(std::span<const double> rows, std::span<const double> row_weights) {
  AddRows(rows, row_weights);
}

void CovarianceAccumulator::AddSums(MatrixRef second_moment_sum, VectorRef sum, int64_t count) {
  OSCAR_CHECK_EQ(second_moment_sum.rows(), dim());
  OSCAR_CHECK_EQ(second_moment_sum.cols(), dim());
  OSCAR_CHECK_EQ(sum.size(), dim());
  OSCAR_CHECK_LE(0, count);
  upper_ += 0.5 * (second_moment_sum + second_moment_sum.transpose());
  sum_ += sum;
  count_ += count;
}

void CovarianceAccumulator::Merge(const CovarianceAccumulator& other) {
  OSCAR_CHECK_EQ(dim(), other.dim());
  upper_ += other.upper_;
  sum_ += other.sum_;
  count_ += other.count_;
}

Matrix CovarianceAccumulator::second_moment_sum() const {
  return upper_.selfadjointView<Eigen::Upper>();
}

Covariance CovarianceAccumulator::Finish(std::string_view what) const {
  if (count_ == 0) {
    throw NumericalError(fmt::format(
        "{}: no token was recorded; the layer was not run, or the data is empty", what));
  }
  Covariance result;
  result.second_moment = second_moment_sum() / static_cast<double>(count_);
  result.mean = sum_ / static_cast<double>(count_);
  result.count = count_;
  if (!result.second_moment.allFinite() || !result.mean.allFinite()) {
    throw NumericalError(fmt::format(
        "{}: the second moment of {} rows of {} values holds NaN or Inf; the usual cause is an "
        "overflow in the model's float16 activations (try --dtype bf16 or f32) or a damaged "
        "checkpoint",
        what, count_, dim()));
  }
  return result;
}

}  // namespace oscar
