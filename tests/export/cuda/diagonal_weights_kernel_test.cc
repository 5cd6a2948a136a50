// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of the diagonal target and column sums on the GPU against plain sums on the host.
#include <gtest/gtest.h>

#include <cmath>

#include "export/cuda/statistics/column_sums.h"
#include "export/cuda/statistics/diagonal_weights.h"
#include "tests/export/cuda/gram_host.h"

namespace oscar {
namespace {

constexpr RowType kTypes[] = {RowType::kBFloat16, RowType::kFloat16, RowType::kFloat32};

TEST(DiagonalWeightsKernel, AreTheQuadraticFormOfEachKey) {
  for (const RowType type : kTypes) {
    for (const int dim : {32, 40, 64, 72, 128, 192, 200, 512}) {
      const RowsShape shape{type, dim == 128 ? 1037 : 130, 3, 3, dim, 8, 24};
      const TestRows keys = MakeRows(shape, RowsKind::kLargeMean, 1);
      // A covariance of other rows: symmetric in every bit.
      const TestRows queries = MakeRows({RowType::kFloat32, 40, 3, 3, dim}, RowsKind::kNormal, 2);
      const std::vector<double> covariance = HostGram(queries);
      const DeviceArray<double> device_covariance(covariance);
      DeviceArray<double> weights(static_cast<size_t>(shape.num_tokens * 3));
      weights.Fill(0xFF);
      ComputeDiagonalWeights(keys.rows, device_covariance.data(), weights.data(), nullptr);
      const std::vector<double> found = weights.ToHost();
      std::vector<double> totals(3);
      for (int64_t token = 0; token < shape.num_tokens; ++token) {
        for (int64_t head = 0; head < 3; ++head) {
          const double* k = keys.values.data() + (token * 3 + head) * dim;
          const double* c = covariance.data() + head * dim * dim;
          double expected = 0;
          for (int64_t i = 0; i < dim; ++i) {
            for (int64_t j = 0; j < dim; ++j) expected += k[i] * c[i * dim + j] * k[j];
          }
          ASSERT_NEAR(found[static_cast<size_t>(token * 3 + head)], expected,
                      1e-11 * std::abs(expected))
              << Describe(shape) << ", token " << token << ", head " << head;
          totals[static_cast<size_t>(head)] += expected;
        }
      }
      const DeviceArray<double> sums(std::vector<double>{5, 6, 7});
      AccumulateWeightSums(weights.data(), shape.num_tokens, 3, sums.data(), nullptr);
      const std::vector<double> found_sums = sums.ToHost();
      for (size_t head = 0; head < 3; ++head) {
        const double expected = totals[head] + 5 + static_cast<double>(head);
        EXPECT_NEAR(found_sums[head], expected, 1e-11 * expected);
      }
    }
  }
}

TEST(ColumnSumsKernel, AreThePlainSums) {
  for (const RowType type : kTypes) {
    for (const int dim : {32, 40, 64, 120, 128, 200, 512}) {
      for (const int64_t tokens : {1, 63, 64, 700}) {
        for (const int ratio : {1, 3}) {
          const RowsShape shape{type, tokens, 2 * ratio, 2, dim, 8, 16};
          const TestRows x = MakeRows(shape, RowsKind::kNormal, 3);
          const auto size = static_cast<size_t>(dim);
          std::vector<double> expected(2 * size, 1), magnitude(2 * size, 1);
          for (size_t i = 0; i < x.values.size(); ++i) {
            const size_t head =
                i / size % static_cast<size_t>(2 * ratio) / static_cast<size_t>(ratio);
            expected[head * size + i % size] += x.values[i];
            magnitude[head * size + i % size] += std::abs(x.values[i]);
          }
          std::vector<double> found[2];
          for (std::vector<double>& run : found) {
            const DeviceArray<double> sums(std::vector<double>(2 * size, 1.0));
            DeviceArray<uint8_t> workspace(ColumnSumsWorkspaceBytes(x.rows));
            workspace.Fill(0xFF);
            AccumulateColumnSums(x.rows, sums.data(), workspace.data(), nullptr);
            run = sums.ToHost();
          }
          for (size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(found[0][i], expected[i], 1e-14 * magnitude[i]) << Describe(shape);
            ASSERT_EQ(found[0][i], found[1][i]);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace oscar
