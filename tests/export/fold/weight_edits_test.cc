// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/fold/weight_edits.h"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "linalg/base/error.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

constexpr int64_t kHidden = 12, kDim = 8, kQHeads = 4, kKvHeads = 2;

LayerSpec Layer(bool qk_norm) {
  LayerSpec layer;
  layer.layer_id = 3;
  AttentionSpec& a = layer.attention;
  a.num_q_heads = kQHeads;
  a.num_kv_heads = kKvHeads;
  a.head_dim = a.v_head_dim = kDim;
  a.qk_norm = qk_norm;
  a.rope.rotary_dim = 4;  // rope pairs (0, 2), (1, 3); 4 .. 7 are not rotated
  a.q = {"q", "q.bias", kHidden, kQHeads * kDim};
  a.k = {"k", "k.bias", kHidden, kKvHeads * kDim};
  a.v = {"v", "", kHidden, kKvHeads * kDim};
  a.o = {"o", "", kQHeads * kDim, kHidden};
  a.q_norm = {"q_norm", kDim};
  a.k_norm = {"k_norm", kDim};
  return layer;
}

Vector Scales(uint64_t seed) {
  Vector d = RandomNormal(kDim, 1, seed).array().exp();
  d[2] = d[0];
  d[3] = d[1];
  return d;
}

KeyTransform RandomTransform(uint64_t seed) {
  const Matrix x = RandomNormal(kDim, kDim, seed) + 3 * Matrix::Identity(kDim, kDim);
  return {.x = x, .inverse = x.inverse()};
}

WeightMatrix Edited(const std::map<std::string, WeightEdit>& edits, const std::string& name,
                    WeightMatrix weight) {
  edits.at(name)(weight);
  return weight;
}

// Returns q k^T of one query head for a hidden row x, including biases.
double Logit(const Vector& x, const WeightMatrix& q, const WeightMatrix& q_bias,
             const WeightMatrix& k, const WeightMatrix& k_bias, int64_t q_head) {
  const int64_t kv_head = q_head / (kQHeads / kKvHeads);
  return (q * x + q_bias.col(0))
      .segment(q_head * kDim, kDim)
      .dot((k * x + k_bias.col(0)).segment(kv_head * kDim, kDim));
}

TEST(WeightEdits, KeyScalesOfProjectionsLeaveEveryLogit) {
  const auto edits =
      WeightEdits(Layer(false), {.key_scales = {Scales(1), Scales(2)}, .values = {}});
  EXPECT_EQ(edits.size(), 4U);
  const Vector x = RandomNormal(kHidden, 1, 3);
  const WeightMatrix q = RandomNormal(kQHeads * kDim, kHidden, 4),
                     k = RandomNormal(kKvHeads * kDim, kHidden, 5),
                     q_bias = RandomNormal(kQHeads * kDim, 1, 6),
                     k_bias = RandomNormal(kKvHeads * kDim, 1, 7);
  const WeightMatrix q2 = Edited(edits, "q", q), k2 = Edited(edits, "k", k),
                     q2_bias = Edited(edits, "q.bias", q_bias),
                     k2_bias = Edited(edits, "k.bias", k_bias);
  for (int64_t head = 0; head < kQHeads; ++head) {
    EXPECT_NEAR(Logit(x, q2, q2_bias, k2, k2_bias, head), Logit(x, q, q_bias, k, k_bias, head),
                1e-11);
  }
  // Only KV head 1 has the second set of scales.
  EXPECT_EQ(k2.row(kDim + 5), k.row(kDim + 5) * Scales(2)[5]);
  EXPECT_EQ(k2_bias(5, 0), k_bias(5, 0) * Scales(1)[5]);
}

TEST(WeightEdits, QkNormHoldsOneSetOfScales) {
  const Vector d = Scales(1);
  const auto edits = WeightEdits(Layer(true), {.key_scales = {d}, .values = {}});
  EXPECT_EQ(edits.size(), 2U);
  const WeightMatrix ones = WeightMatrix::Ones(kDim, 1);
  EXPECT_EQ(Vector(Edited(edits, "k_norm", ones)), d);
  EXPECT_EQ(Vector(Edited(edits, "q_norm", ones)), Vector(d.cwiseInverse()));
  EXPECT_THROW(WeightEdits(Layer(true), {.key_scales = {d, d}, .values = {}}), UsageError);
}

TEST(WeightEdits, RefusesScalesThatDoNotCommuteWithRope) {
  Vector d = Scales(1);
  d[5] *= 2;  // not rotated by rope
  EXPECT_NO_THROW(WeightEdits(Layer(true), {.key_scales = {d}, .values = {}}));
  d[2] *= 2;
  EXPECT_THROW(WeightEdits(Layer(true), {.key_scales = {d}, .values = {}}), UsageError);
}

TEST(WeightEdits, ValuesComeOutOfOProjAsTheyWere) {
  const std::vector<KeyTransform> values = {RandomTransform(1), RandomTransform(2)};
  const auto edits = WeightEdits(Layer(true), {.key_scales = {}, .values = values});
  EXPECT_EQ(edits.size(), 2U);
  const Matrix x = RandomNormal(kHidden, 6, 3);
  const Matrix p = RandomNormal(6, kQHeads, 4);  // attention weights, a column for each query head
  const WeightMatrix v = RandomNormal(kKvHeads * kDim, kHidden, 5),
                     o = RandomNormal(kHidden, kQHeads * kDim, 6);
  const auto output = [&](const WeightMatrix& v_proj, const WeightMatrix& o_proj) {
    const Matrix rows = v_proj * x;
    Vector mixed(kQHeads * kDim);
    for (int64_t head = 0; head < kQHeads; ++head) {
      mixed.segment(head * kDim, kDim) = rows.middleRows(head / 2 * kDim, kDim) * p.col(head);
    }
    return Vector(o_proj * mixed);
  };
  const WeightMatrix v2 = Edited(edits, "v", v), o2 = Edited(edits, "o", o);
  EXPECT_LT((output(v2, o2) - output(v, o)).norm(), 1e-11 * output(v, o).norm());
  EXPECT_GT((output(v2, o) - output(v, o)).norm(), 0.1 * output(v, o).norm());
  // A row of the value cache is v_proj x.
  EXPECT_LT((v2.middleRows(kDim, kDim) * x - values[1].x.transpose() * v.middleRows(kDim, kDim) * x)
                .norm(),
            1e-11);
}

TEST(WeightEdits, ABiasOfValuesGoesTheWayOfTheirRows) {
  LayerSpec layer = Layer(true);
  layer.attention.v.bias = "v.bias";
  const std::vector<KeyTransform> values = {RandomTransform(1), RandomTransform(2)};
  const auto edits = WeightEdits(layer, {.key_scales = {}, .values = values});
  const WeightMatrix bias = RandomNormal(kKvHeads * kDim, 1, 5);
  const WeightMatrix edited = Edited(edits, "v.bias", bias);
  for (int64_t head = 0; head < kKvHeads; ++head) {
    const Vector expected = values[static_cast<size_t>(head)].x.transpose() *
                            Vector(bias.col(0).segment(head * kDim, kDim));
    EXPECT_LT((Vector(edited.col(0).segment(head * kDim, kDim)) - expected).norm(), 1e-12);
  }
}

TEST(WeightEdits, NothingToFoldChangesNothing) {
  EXPECT_TRUE(WeightEdits(Layer(true), {}).empty());
}

}  // namespace
}  // namespace oscar
