// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/rope_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "capture/model/run/decoder_layer.h"

namespace oscar {
namespace {

RopeSpec Spec(int64_t rotary_dim) {
  RopeSpec rope;
  rope.theta = 1e6;
  rope.rotary_dim = rotary_dim;
  return rope;
}

at::Tensor Rows(at::ScalarType dtype, int64_t tokens = 300) {
  at::manual_seed(1);
  return at::randn({tokens, 3, 32}, dtype);
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

TEST(RopeRows, TurnsAsTheModelDoes) {
  for (const int64_t rotary_dim : {32, 16, 0}) {
    RopeSpec rope = Spec(rotary_dim);
    if (rotary_dim == 16) {
      rope.kind = RopeKind::kLlama3;
      rope.factor = 8;
      rope.original_max_positions = 64;
    }
    const at::Tensor rows = Rows(at::kFloat);
    at::Tensor turned = rows.clone();
    if (rotary_dim > 0)
      RotateInPlace(turned, MakeRopeTable(rope, rows.size(0), {at::kCPU, at::kFloat}));
    EXPECT_LT(LargestDifference(ApplyRope(rows, rope), turned), 2e-6) << rotary_dim;
  }
}

TEST(RopeRows, UndoneItIsGone) {
  for (const int64_t rotary_dim : {32, 20, 0}) {
    const RopeSpec rope = Spec(rotary_dim);
    const at::Tensor rows = Rows(at::kDouble, 5000);
    EXPECT_LT(LargestDifference(UndoRope(ApplyRope(rows, rope), rope), rows), 1e-14);
    EXPECT_LT(LargestDifference(ApplyRope(UndoRope(rows, rope), rope), rows), 1e-14);
    const at::Tensor narrow = rows.to(at::kFloat);
    EXPECT_LT(LargestDifference(ApplyRope(UndoRope(narrow, rope), rope), narrow), 3e-6);
    EXPECT_TRUE(UndoRope(rows, rope).slice(2, rotary_dim).equal(rows.slice(2, rotary_dim)));
  }
}

// Rotates a pair at position 3 by one radian per token.
TEST(RopeRows, ByHand) {
  const RopeSpec rope = Spec(2);
  at::Tensor rows = at::zeros({4, 1, 2}, at::kDouble);
  rows[3][0][0] = 1;
  const at::Tensor turned = ApplyRope(rows, rope);
  EXPECT_NEAR(turned[3][0][0].item<double>(), std::cos(3.0), 1e-15);
  EXPECT_NEAR(turned[3][0][1].item<double>(), std::sin(3.0), 1e-15);
  EXPECT_NEAR(UndoRope(rows, rope)[3][0][1].item<double>(), -std::sin(3.0), 1e-15);
  EXPECT_TRUE(turned[0].equal(rows[0]));
}

}  // namespace
}  // namespace oscar
