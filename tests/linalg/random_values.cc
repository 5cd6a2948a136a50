// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/linalg/random_values.h"

#include <Eigen/QR>
#include <cmath>
#include <random>

namespace oscar {

Matrix RandomNormal(int64_t rows, int64_t cols, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, cols, [&] { return normal(generator); });
}

Matrix RandomCovariance(int64_t dim, uint64_t seed) {
  Matrix rows = RandomNormal(2 * dim, dim, seed);
  for (int64_t i = 0; i < dim; ++i) {
    rows.col(i) *= std::pow(10, 1 - 2 * static_cast<double>(i) / static_cast<double>(dim));
  }
  const Matrix turned = rows * RandomOrthogonal(dim, seed + 1);
  return turned.transpose() * turned / static_cast<double>(2 * dim);
}

Matrix RandomOrthogonal(int64_t dim, uint64_t seed) {
  return Eigen::HouseholderQR<Matrix>(RandomNormal(dim, dim, seed)).householderQ();
}

std::vector<double> RandomRows(int64_t tokens, int64_t dim, uint64_t seed, double sigma) {
  const Matrix columns = sigma * RandomNormal(dim, tokens, seed);
  return {columns.data(), columns.data() + columns.size()};
}

std::vector<float> RandomRow(int64_t dim, uint64_t seed) {
  const std::vector<double> row = RandomRows(1, dim, seed);
  return {row.begin(), row.end()};
}

}  // namespace oscar
