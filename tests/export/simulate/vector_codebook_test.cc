// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests codebooks of vectors, and VecInfer, which uses them.
#include "export/simulate/codecs/vector_codebook.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

TEST(VectorCodebook, HoldsAsManyPointsAsItHasEntries) {
  at::manual_seed(1);
  const at::Tensor points = at::randn({7, 4}, at::kDouble), often = points.repeat({50, 1}),
                   codebook = VectorCodebook(often, {.entries = 16});
  EXPECT_TRUE(NearestEntries(often, codebook).allclose(often, 1e-12, 1e-12));
  EXPECT_EQ(codebook.size(0), 16);
}

TEST(VectorCodebook, EntriesAreTheMeansOfTheirPoints) {
  at::manual_seed(2);
  const at::Tensor points = at::randn({600, 2}, at::kDouble);
  const at::Tensor codebook = VectorCodebook(points, {.entries = 8, .iterations = 200});
  const at::Tensor nearest = at::cdist(points, codebook).argmin(1);
  for (int64_t i = 0; i < 8; ++i) {
    const at::Tensor own = points.index({nearest.eq(i)});
    EXPECT_TRUE(own.mean(0).allclose(codebook[i], 1e-9, 1e-9)) << i;
  }
  EXPECT_TRUE(NearestEntries(points, codebook).equal(codebook.index_select(0, nearest)));
}

TEST(VectorCodebook, OnTheSphereAnglesDecide) {
  at::manual_seed(3);
  const at::Tensor points = at::randn({500, 3}, at::kDouble);
  const at::Tensor codebook = VectorCodebook(points, {.entries = 20, .spherical = true}),
                   scaled = VectorCodebook(points.mul(at::rand({500, 1}, at::kDouble).add_(0.1)),
                                           {.entries = 20, .spherical = true});
  EXPECT_TRUE(codebook.norm(2, {1}).allclose(at::ones({20}, at::kDouble)));
  EXPECT_EQ(scaled.size(0), 20);
  const at::Tensor turned = NearestEntries(points.mul(5), codebook);
  EXPECT_TRUE(turned.equal(NearestEntries(points, codebook)));
}

// The calibration rows repeat three tokens, so the codebooks contain all their vectors. Keys and
// values are then read back exactly.
TEST(VecInfer, ReadsWhatItsCodebookHolds) {
  RowContext rows(kSmallRows);
  at::manual_seed(4);
  const at::Tensor k = at::randn({3, 2, 64}, at::kDouble).mul_(at::linspace(-2, 2, 64).exp_()),
                   v = at::randn({3, 2, 32}, at::kDouble);
  const CacheSides x = {k.repeat({20, 1, 1}), v.repeat({20, 1, 1})};
  rows.context().SetRows({.q = rows.rows().q, .k = {x.k}, .v = {x.v}});
  const CacheSides read = Stored(rows, "vecinfer_2", x);  // keys have 3 * 2 * 16 distinct vectors
  EXPECT_LT(RelativeError(read.k, x.k), 1e-10);
  EXPECT_LT(RelativeError(read.v, x.v), 1e-10);
  const LayerCache cache = CacheMethodNamed("vecinfer_2").make(rows.context(), 0, {});
  EXPECT_EQ(cache.k_exact.quantized_end(500), 500 - 128);
}

TEST(VecInfer, CostsItsIndices) {
  RowContext rows({.head_dim = 128, .v_head_dim = 128});
  const CacheCost cost = CacheMethodNamed("vecinfer_2").cost(rows.context(), {}, 1 << 17);
  EXPECT_NEAR(cost.paper, 2 + 14 * 128.0 / (1 << 17), 1e-9);
}

}  // namespace
}  // namespace oscar
