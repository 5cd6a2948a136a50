// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/rotate_kv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "export/simulate/rope_rows.h"
#include "linalg/hadamard.h"
#include "tests/export/simulate/row_context.h"
#include "tests/reference/scalar_affine_families.h"

namespace oscar {
namespace {

AttentionSpec Spec(const RowGeometry& g) {
  AttentionSpec spec;
  spec.num_q_heads = g.num_q_heads;
  spec.num_kv_heads = g.num_kv_heads;
  spec.head_dim = g.head_dim;
  spec.v_head_dim = g.v_head_dim;
  spec.rope.rotary_dim = g.head_dim;
  return spec;
}

double Largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

TEST(RotateKv, FourHeadsOrTheLargestPowerOfTwo) {
  EXPECT_EQ(HeadsRotated(8), 4);
  EXPECT_EQ(HeadsRotated(4), 4);
  EXPECT_EQ(HeadsRotated(2), 2);
  EXPECT_EQ(HeadsRotated(6), 2);
  EXPECT_EQ(HeadsRotated(3), 1);
  EXPECT_EQ(HeadsRotated(1), 1);
}

TEST(RotateKv, KeysAreRotatedByTheHadamardOfFourHeads) {
  const RowGeometry g = {.num_kv_heads = 4};
  const RotateKvLayer layer = FitRotateKv(Spec(g), RandomCalibrationRows(g));
  const Matrix h = BlockHadamard(128);
  for (int64_t i = 0; i < 128; ++i) {
    for (int64_t j = 0; j < 128; ++j)
      ASSERT_NEAR(layer.k_rotation[i][j].item<double>(), h(i, j), 1e-15);
  }
}

TEST(RotateKv, UnquantizedItIsTheRows) {
  for (const RowGeometry& g :
       {RowGeometry{}, RowGeometry{.num_q_heads = 8, .num_kv_heads = 8, .head_dim = 24},
        RowGeometry{.num_q_heads = 3, .num_kv_heads = 3, .v_head_dim = 16}}) {
    const CalibrationRows rows = RandomCalibrationRows(g);
    const LayerCache cache = RotateKvCache(Spec(g), FitRotateKv(Spec(g), rows), {.bits = 0});
    const at::Tensor k = rows.k[0].to(at::kDouble), v = rows.v[0].to(at::kDouble);
    const CachedRows cached = cache.store({k, v});
    EXPECT_LT(Largest(cached.quantized.k - k), 1e-12);
    EXPECT_LT(Largest(cached.quantized.v - v), 1e-12);
  }
}

TEST(RotateKv, ChannelsAreInOrderOfTheirSums) {
  const RowGeometry g = {};
  const CalibrationRows rows = RandomCalibrationRows(g);
  const RotateKvLayer layer = FitRotateKv(Spec(g), rows);
  at::Tensor sums = at::zeros({64}, at::kDouble);
  for (const at::Tensor& k : rows.k) {
    const at::Tensor rotated =
        at::matmul(UndoRope(k.to(at::kDouble), Spec(g).rope).flatten(1), layer.k_rotation);
    sums.add_(rotated.sum(0));
  }
  const at::Tensor ordered = sums.index_select(0, layer.permutation);
  EXPECT_GE(ordered.diff().min().item<double>(), 0);
}

TEST(RotateKv, RowsAreThoseOfTheScalarCodec) {
  const RowGeometry g = {.num_kv_heads = 4, .head_dim = 64};
  const CalibrationRows rows = RandomCalibrationRows(g);
  const RotateKvLayer layer = FitRotateKv(Spec(g), rows);
  const at::Tensor k = rows.k[0].to(at::kDouble);
  const at::Tensor before = at::matmul(UndoRope(k, Spec(g).rope).flatten(1), layer.k_rotation)
                                .index_select(1, layer.permutation)
                                .contiguous();
  for (const int divisor : {7, 8}) {
    const LayerCache cache =
        RotateKvCache(Spec(g), layer, {.bits = 3, .clip_ratio = 0.9F, .divisor = divisor});
    const at::Tensor read = cache.store({k, rows.v[0].to(at::kDouble)}).quantized.k;
    const at::Tensor after = at::matmul(UndoRope(read, Spec(g).rope).flatten(1), layer.k_rotation)
                                 .index_select(1, layer.permutation);
    const AffineRule rule = {
        .family = AffineFamily::kIntegerZero, .bits = 3, .clip_ratio = 0.9F, .divisor = divisor};
    std::vector<uint8_t> codes(256);
    std::vector<double> scales(4), values(256);
    for (const int64_t token : {0, 17, 159}) {
      EncodeAffineFamily<double>({before[token].const_data_ptr<double>(), 256}, rule, 128, codes,
                                 scales);
      DecodeAffineFamily<double>(codes, scales, rule, 128, values);
      EXPECT_LT(Largest(after[token] - at::tensor(values, at::kDouble)), 1e-10) << token;
    }
  }
}

TEST(RotateKv, TokensDoNotSeeEachOtherAndTheFirstIsExact) {
  RowContext context({});
  const LayerCache cache = CacheMethodNamed("rotatekv2").make(context.context(), 0, {});
  const at::Tensor k = context.rows().k[0], v = context.rows().v[0];
  const CachedRows whole = cache.store({k, v}),
                   part = cache.store({k.slice(0, 0, 40), v.slice(0, 0, 40)});
  EXPECT_LT(Largest(part.quantized.k - whole.quantized.k.slice(0, 0, 40)), 1e-5);
  EXPECT_LT(Largest(part.quantized.v - whole.quantized.v.slice(0, 0, 40)), 1e-5);
  EXPECT_EQ(cache.k_exact.sink, 1);
  EXPECT_FALSE(cache.v_exact.quantized_end);
}

// Codes and scales take b + 32 / 128 bits per value. The first token takes 16.
TEST(RotateKv, Cost) {
  RowContext context({.num_q_heads = 32, .num_kv_heads = 8, .head_dim = 128, .v_head_dim = 128});
  EXPECT_NEAR(CacheMethodNamed("rotatekv2").cost(context.context(), {}, 1 << 30).paper, 2.25, 1e-7);
  const CacheCost cost = CacheMethodNamed("rotatekv3").cost(context.context(), {}, 1000);
  EXPECT_NEAR(cost.paper, 3.25 * 0.999 + 0.016, 1e-12);
  EXPECT_EQ(cost.actual, cost.paper);
  EXPECT_NEAR(CacheMethodNamed("rotatekv4").cost(context.context(), {}, 1 << 30).actual, 4.25,
              1e-7);
}

}  // namespace
}  // namespace oscar
