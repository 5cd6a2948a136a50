// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/error_feedback.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "linalg/base/error.h"
#include "linalg/key_transform.h"

namespace oscar {
namespace {

// Returns the smallest power of two whose product with kMaxFeedback is at least `largest`.
double FeedbackUnit(double largest) {
  return std::exp2(std::ceil(std::log2(largest / kMaxFeedback)));
}

}  // namespace

Matrix FeedbackFactor(MatrixRef metric, double damping, std::string_view what) {
  // Cholesky factor of the matrix with its coordinates in reverse order.
  const Eigen::LLT<Matrix> reversed(Shrunk(metric, damping).reverse());
  if (reversed.info() != Eigen::Success) {
    throw NumericalError(
        fmt::format("{}: the metric has no Cholesky factor; use a larger damping", what));
  }
  const Matrix lower = reversed.matrixL();
  Matrix factor = (lower * lower.diagonal().cwiseInverse().asDiagonal()).reverse();
  factor.diagonal().setZero();
  const double largest = factor.cwiseAbs().maxCoeff();
  if (largest == 0) return factor;
  const double unit = FeedbackUnit(largest);
  return (factor / unit).array().rint().matrix() * unit;
}

PackedFeedback PackFeedbackFactor(MatrixRef factor) {
  const double largest = factor.cwiseAbs().maxCoeff();
  const double unit = largest == 0 ? 1 : FeedbackUnit(largest);
  const Matrix integers = factor / unit;
  if (!(unit >= 0x1p-64 && unit <= 0x1p32) || integers != integers.array().rint().matrix() ||
      !factor.isUpperTriangular(0) || !factor.diagonal().isZero(0))
    throw NumericalError(
        fmt::format("the error-feedback factor ({} x {}, largest entry {:g}) must be strictly "
                    "upper triangular, and its entries must be integers of at most {} times a "
                    "power of two from 2^-64 to 2^32",
                    factor.rows(), factor.cols(), largest, kMaxFeedback));
  const int64_t dim = factor.cols();
  PackedFeedback packed{
      std::vector<int8_t>(static_cast<size_t>(dim * FeedbackStride(static_cast<int>(dim)))),
      static_cast<float>(unit)};
  int8_t* column = packed.columns.data();
  for (int64_t j = 0; j < dim; ++j, column += FeedbackStride(static_cast<int>(dim))) {
    for (int64_t i = 0; i < j; ++i) {
      const bool own = i / kFeedbackBlock == j / kFeedbackBlock;
      column[own ? dim + i % kFeedbackBlock : i] = static_cast<int8_t>(integers(i, j));
    }
  }
  return packed;
}

}  // namespace oscar
