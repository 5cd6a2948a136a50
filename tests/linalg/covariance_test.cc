// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/covariance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "linalg/base/error.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

TEST(Covariance, TwoRowsByHand) {
  CovarianceAccumulator accumulator(2);
  accumulator.Add(std::vector<double>{1, 2, 3, -4});
  const Covariance c = accumulator.Finish("test");
  EXPECT_EQ(c.second_moment, (Matrix{{5, -5}, {-5, 10}}));
  EXPECT_EQ(c.mean, (Vector{{2, -1}}));
  EXPECT_EQ(c.count, 2);
}

TEST(Covariance, FloatRowsAreSummedInFloat64) {
  // 1 + 2^-30 needs float64 once squared and summed; each row is exact in float32.
  CovarianceAccumulator accumulator(1);
  accumulator.Add(std::vector<float>{1, 0x1p-15F});
  EXPECT_EQ(accumulator.second_moment_sum()(0, 0), 1 + 0x1p-30);
}

TEST(Covariance, WeightsMultiplyRowsAndLeaveTheCount) {
  CovarianceAccumulator accumulator(2);
  accumulator.Add(std::vector<double>{1, 2, 3, 4}, std::vector<double>{0.5, 1.5});
  EXPECT_EQ(accumulator.second_moment_sum(), (Matrix{{14, 19}, {19, 26}}));
  EXPECT_EQ(accumulator.sum(), (Vector{{5, 7}}));
  EXPECT_EQ(accumulator.count(), 2);
}

TEST(Covariance, AgreesWithTheMatrixProduct) {
  const int64_t d = 33;
  const int64_t n = 500;
  const std::vector<double> rows = RandomRows(n, d, 1, 3);
  const Eigen::Map<const Matrix> columns(rows.data(), d, n);
  CovarianceAccumulator accumulator(d);
  accumulator.Add(rows);
  const Covariance c = accumulator.Finish("test");
  const Matrix expected = columns * columns.transpose() / static_cast<double>(n);
  EXPECT_LE((c.second_moment - expected).norm() / expected.norm(), 1e-14);
  EXPECT_LE((c.mean - columns.rowwise().mean()).norm(), 1e-14);
  EXPECT_EQ(c.second_moment, Matrix(c.second_moment.transpose()));
}

TEST(Covariance, HowRowsAreSplitOverCallsDoesNotMatter) {
  const int64_t d = 16;
  const std::vector<double> rows = RandomRows(100, d, 2);
  CovarianceAccumulator at_once(d);
  at_once.Add(rows);
  CovarianceAccumulator in_pieces(d);
  const std::span<const double> all(rows);
  for (size_t start = 0; start < 100; start += 7) {
    in_pieces.Add(all.subspan(start * d, std::min<size_t>(7, 100 - start) * d));
  }
  EXPECT_EQ(at_once.second_moment_sum(), in_pieces.second_moment_sum());
  EXPECT_EQ(at_once.sum(), in_pieces.sum());
}

TEST(Covariance, MergeAndAddSumsAddWhatTheOthersHold) {
  const int64_t d = 8;
  const std::vector<double> first = RandomRows(40, d, 3);
  const std::vector<double> second = RandomRows(60, d, 4);
  CovarianceAccumulator a(d);
  a.Add(first);
  CovarianceAccumulator b(d);
  b.Add(second);
  CovarianceAccumulator merged = a;
  merged.Merge(b);
  CovarianceAccumulator from_sums = a;
  from_sums.AddSums(b.second_moment_sum(), b.sum(), b.count());

  EXPECT_EQ(merged.count(), 100);
  EXPECT_EQ(merged.second_moment_sum(), a.second_moment_sum() + b.second_moment_sum());
  EXPECT_EQ(merged.sum(), a.sum() + b.sum());
  EXPECT_EQ(from_sums.second_moment_sum(), merged.second_moment_sum());
  EXPECT_EQ(from_sums.count(), 100);
}

TEST(Covariance, AddSumsSymmetrizes) {
  CovarianceAccumulator accumulator(2);
  accumulator.AddSums(Matrix{{1, 2}, {4, 1}}, Vector{{0, 0}}, 1);
  EXPECT_EQ(accumulator.second_moment_sum(), (Matrix{{1, 3}, {3, 1}}));
}

TEST(Covariance, NothingRecordedAndNonFiniteSumsAreErrorsByName) {
  CovarianceAccumulator accumulator(2);
  try {
    accumulator.Finish("layer 7, KV head 2, query covariance");
    FAIL() << "accepted";
  } catch (const NumericalError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 7, KV head 2, query covariance"),
              std::string::npos);
  }
  accumulator.Add(std::vector<float>{1, INFINITY});
  EXPECT_THROW(accumulator.Finish("test"), NumericalError);
  CovarianceAccumulator overflow(1);
  overflow.Add(std::vector<double>{1e200});
  EXPECT_THROW(overflow.Finish("test"), NumericalError);
}

}  // namespace
}  // namespace oscar
