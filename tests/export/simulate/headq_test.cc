// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares HeadQ with the Hadamard cache whose errors it encodes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "export/simulate/fitted_moments.h"
#include "linalg/eigh.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

// Along the queries' leading directions, the error shrinks to half a 4-bit step or less. The error
// in other directions does not change.
TEST(HeadQ, ErrorsAlongLeadingDirectionsAreWritten) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kDouble);
  const CacheSides read = Stored(rows, "headq", x), below = Stored(rows, "hadamard", x);
  EXPECT_TRUE(read.v.equal(below.v));
  const LayerMoments moments = ArtifactMoments(rows.context(), 0);
  const int64_t dim = moments.head_dim, rank = dim / 8;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    const Matrix vectors = SymmetricEigenbasis(moments.QueryCovariance(head), "C").eigenvectors;
    for (int64_t token = 0; token < x.k.size(0); token += 7) {
      const auto row = [&](const at::Tensor& of) {
        const at::Tensor values = of[token][head].contiguous();
        return Vector(Eigen::Map<const Vector>(values.const_data_ptr<double>(), dim));
      };
      const Vector before = vectors.transpose() * (row(x.k) - row(below.k)),
                   after = vectors.transpose() * (row(x.k) - row(read.k));
      const auto lead = before.tail(rank);
      const double step = (lead.maxCoeff() - lead.minCoeff()) / 15;
      EXPECT_LE(after.tail(rank).cwiseAbs().maxCoeff(), 0.5 * step + 1e-6) << token;
      EXPECT_LT((after - before).head(dim - rank).cwiseAbs().maxCoeff(), 1e-6) << token;
    }
  }
}

}  // namespace
}  // namespace oscar
