// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares SQuat's keys with the recursion in its paper, and its values with KIVI, whose format it
// uses.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "export/simulate/methods/kivi.h"
#include "export/simulate/rope_rows.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

// Returns rows whose queries span only 8 directions, so that SQuat's subspace contains them all.
CalibrationRows SubspaceRows(const RowGeometry& geometry) {
  CalibrationRows rows = RandomCalibrationRows(geometry);
  const at::Tensor directions = at::randn({8, geometry.head_dim}, at::kFloat);
  for (at::Tensor& q : rows.q) q = at::matmul(q.slice(2, 0, 8), directions);
  return rows;
}

// Returns P of one KV head as in the paper, from the singular vectors of the stacked queries.
at::Tensor PublishedMetric(const std::vector<at::Tensor>& sequences, int64_t head, int64_t heads) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& q : sequences)
    parts.push_back(q.unflatten(1, {heads, -1}).select(1, head).flatten(0, 1).to(at::kDouble));
  const auto [u, s, v] = at::linalg_svd(at::cat(parts), false);
  const at::Tensor q_hat = s.slice(0, 0, 20).unsqueeze(1).mul(v.slice(0, 0, 20));
  return at::eye(v.size(1), at::kDouble)
      .add(at::matmul(q_hat.t(), q_hat), 0.001 / static_cast<double>(sequences.size()));
}

// Reads back channels [128, tokens] of one block in two halves. The error of the first half moves
// the second by the paper's B_t H_t, built from blocks of P^-1.
at::Tensor PublishedRead(const at::Tensor& channels, const at::Tensor& metric) {
  const KiviOptions format = {.bits = 2, .quant_group_size = 32, .residual = 32};
  const at::Tensor inverse = at::linalg_inv(metric),
                   shared = at::linalg_inv(inverse.slice(0, 0, 64).slice(1, 0, 64));
  const at::Tensor first = KiviChannels(channels.slice(0, 0, 64).contiguous(), format);
  const at::Tensor error = first.sub(channels.slice(0, 0, 64));
  const at::Tensor moved =
      channels.slice(0, 64).add(inverse.slice(0, 64).slice(1, 0, 64).matmul(shared).matmul(error));
  return at::cat({first, KiviChannels(moved.contiguous(), format)});
}

TEST(Squat, KeysAreThoseOfThePapersRecursion) {
  RowContext rows(kWideRows);
  rows.context().SetRows(SubspaceRows(kWideRows));
  const CacheSides x = RowsOf(rows, at::kDouble);
  const CacheSides read = Stored(rows, "squat2_post", x);
  for (int64_t head = 0; head < 2; ++head) {
    const at::Tensor metric = PublishedMetric(rows.rows().q, head, 2);
    for (int64_t begin = 0; begin + 32 <= x.k.size(0); begin += 32) {
      const auto block = [&](const at::Tensor& k) {
        return k.slice(0, begin, begin + 32).select(1, head).t();
      };
      EXPECT_LT((block(read.k) - PublishedRead(block(x.k), metric)).abs().max().item<double>(),
                1e-8);
    }
  }
  const CacheSides kivi = KiviCache({.quant_group_size = 32, .residual = 32}).store(x).quantized;
  EXPECT_TRUE(read.v.equal(kivi.v));
  EXPECT_TRUE(read.k.slice(0, 128).equal(x.k.slice(0, 128)));  // tokens 128 to 149 stay exact
}

TEST(Squat, KeysBeforeTheirRopeAreTheOnesRounded) {
  RowContext rows(kWideRows);
  const RopeSpec& rope = rows.spec().rope;
  const CacheSides x = RowsOf(rows, at::kDouble);
  const at::Tensor turned = ApplyRope(x.k, rope);
  const at::Tensor pre = Stored(rows, "squat2", {turned, x.v}).k,
                   post = Stored(rows, "squat2_post", x).k;
  EXPECT_LT((UndoRope(pre, rope) - post).abs().max().item<double>(), 1e-8);
}

TEST(Squat, CostsWhatKivisFormatCosts) {
  RowContext rows({.head_dim = 128, .v_head_dim = 128});
  const CacheCost cost = CacheMethodNamed("squat2").cost(rows.context(), {}, 1 << 17);
  EXPECT_DOUBLE_EQ(cost.paper, 3);  // 2 bits and two 16-bit numbers for 32 values
  EXPECT_NEAR(cost.actual, 3, 0.01);
}

}  // namespace
}  // namespace oscar
