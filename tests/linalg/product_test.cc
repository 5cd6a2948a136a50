// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/product.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "linalg/base/parallel_for.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

TEST(Product, IsTheProduct) {
  for (const Eigen::Index n : {1, 7, 64, 128, 200}) {
    const Matrix a = RandomCovariance(n, 1).leftCols((n + 1) / 2), b = RandomCovariance(n, 2);
    const Matrix c = b.topRows(a.cols());  // [a.cols(), n]
    const double size = a.cwiseAbs().maxCoeff() * b.cwiseAbs().maxCoeff() * static_cast<double>(n);
    EXPECT_LE((Product(a, c) - Matrix(a.lazyProduct(c))).cwiseAbs().maxCoeff(), 1e-15 * size);
    EXPECT_LE(
        (TransposedProduct(a, b) - Matrix(a.transpose().lazyProduct(b))).cwiseAbs().maxCoeff(),
        1e-15 * size);
    EXPECT_LE((Product(b.transpose(), c.transpose()) -
               Product(Matrix(b.transpose()), Matrix(c.transpose())))
                  .cwiseAbs()
                  .maxCoeff(),
              1e-15 * size);
  }
  EXPECT_EQ(Product(Matrix(3, 0), Matrix(0, 2)), Matrix::Zero(3, 2));
}

TEST(ParallelFor, BeginsNothingBehindAFailure) {
  int calls = 0;
  const auto body = [&](int64_t index) {
    ++calls;
    if (index == 2) throw std::runtime_error("third");
  };
  EXPECT_THROW(ParallelFor(100, body, 1), std::runtime_error);
  EXPECT_EQ(calls, 3);
}

TEST(ParallelFor, MayBeNestedAndCalledFromSeveralThreads) {
  std::vector<std::atomic<int>> calls(4 * 8 * 50);
  std::vector<std::jthread> callers;
  for (int64_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&calls, caller] {
      ParallelFor(
          8,
          [&](int64_t i) {
            ParallelFor(
                50, [&](int64_t j) { ++calls[static_cast<size_t>((caller * 8 + i) * 50 + j)]; }, 3);
          },
          3);
    });
  }
  callers.clear();
  for (const std::atomic<int>& of_piece : calls) EXPECT_EQ(of_piece, 1);
}

TEST(Product, ThreadsGetTheSameBytes) {
  const Matrix a = RandomCovariance(128, 3), b = RandomCovariance(128, 4);
  const Matrix alone = Product(a, b);
  std::vector<Matrix> products(64);
  ParallelFor(
      64, [&](int64_t i) { products[static_cast<size_t>(i)] = Product(a, b); }, 8);
  for (const Matrix& product : products) EXPECT_EQ(product, alone);
}

}  // namespace
}  // namespace oscar
