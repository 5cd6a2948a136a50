// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes and their fits: names, JSON, what transforms must keep, and the stability of a fit.
#include "calib/auto_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "linalg/error.h"
#include "tests/calib/sample_moments.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix MatrixAt(const std::vector<double>& values, int64_t index, int64_t dim) {
  return Eigen::Map<const RowMajor>(values.data() + index * dim * dim, dim, dim);
}
Vector RowAt(const std::vector<double>& values, int64_t index, int64_t dim) {
  return Eigen::Map<const Vector>(values.data() + index * dim, dim);
}

// q k^T through the transform of a head, with the constant of a centred key taken back.
double Logit(const AutoSide& side, int64_t head, const Vector& q, const Vector& k) {
  Vector key = k, query = q;
  double constant = 0;
  if (!side.pair_scale.empty()) {
    const Vector d = RowAt(side.pair_scale, head, side.dim);
    key = key.cwiseProduct(d);
    query = query.cwiseQuotient(d);
  }
  if (!side.mean.empty()) {
    const Vector mean = RowAt(side.mean, head, side.dim);
    constant = query.dot(mean);
    key -= mean;
  }
  const int64_t matrix = side.num_rotations == 1 ? 0 : head;
  const Matrix m = MatrixAt(side.rotation, matrix, side.dim);
  const Matrix mq =
      side.query_rotation.empty() ? m : MatrixAt(side.query_rotation, matrix, side.dim);
  return (key.transpose() * m * mq.transpose() * query)(0) + constant;
}

AutoSide FitOne(const LayerMoments& moments, const KeyRecipe& recipe, const FoldRules& fold) {
  return FitKeys(moments, {recipe}, fold).at(0);
}

std::vector<KeyRecipe> AllRecipes() {
  std::vector<KeyRecipe> recipes;
  for (const bool per_head : {false, true}) {
    for (const bool centred : {false, true}) {
      recipes.push_back({.per_head = per_head, .centred = centred});
      for (const bool pow2 : {false, true}) {
        recipes.push_back({.kind = KeyTransformKind::kPairScaled,
                           .power_of_two = pow2,
                           .per_head = per_head,
                           .centred = centred});
      }
    }
  }
  recipes.push_back({.kind = KeyTransformKind::kPairScaled, .folded = false, .per_head = true});
  recipes.push_back(
      {.kind = KeyTransformKind::kPairScaled, .folded = false, .per_head = true, .centred = true});
  recipes.push_back(
      {.kind = KeyTransformKind::kBalanced, .epsilon = 1e-2, .per_head = true, .centred = true});
  return recipes;
}

TEST(AutoFit, NoRecipeChangesALogit) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const KeyRecipe& recipe : AllRecipes()) {
    for (const bool shared : {false, true}) {
      const AutoSide side = FitOne(moments, recipe, {{.rotary_dim = 8}, shared});
      for (int64_t head = 0; head < 2; ++head) {
        Vector q(8), k(8);
        for (int i = 0; i < 8; ++i) {
          q[i] = normal(random);
          k[i] = normal(random);
        }
        EXPECT_NEAR(Logit(side, head, q, k), q.dot(k), 1e-9 * q.norm() * k.norm()) << recipe.Name();
      }
    }
  }
}

TEST(AutoFit, FoldedScalesCommuteWithRopeAndAreSharedWhereWeightsAre) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  const KeyRecipe recipe{.kind = KeyTransformKind::kPairScaled, .per_head = true};
  for (const bool shared : {false, true}) {
    const AutoSide side = FitOne(moments, recipe, {{.rotary_dim = 8}, shared});
    ASSERT_EQ(side.pair_scale.size(), 16u);
    const Vector first = RowAt(side.pair_scale, 0, 8), second = RowAt(side.pair_scale, 1, 8);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(first[i], first[i + 4]);
    EXPECT_EQ(first == second, shared);
    EXPECT_GT(first.maxCoeff() / first.minCoeff(), 1.02);  // the sample's channels differ
  }
  // What is not folded need not be shared, and is no pair_scale.
  KeyRecipe unfolded = recipe;
  unfolded.folded = false;
  const AutoSide side = FitOne(moments, unfolded, {{.rotary_dim = 8}, true});
  EXPECT_TRUE(side.pair_scale.empty());
  EXPECT_EQ(side.query_rotation.size(), side.rotation.size());
}

TEST(AutoFit, PowersOfTwoAreThat) {
  const AutoSide side =
      FitOne(SampleMoments(2, 90, 5), {.kind = KeyTransformKind::kPairScaled, .power_of_two = true},
             {{.rotary_dim = 8}});
  for (const double scale : side.pair_scale)
    EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale);
}

TEST(AutoFit, ARecipeWithoutAFitIsLeftOut) {
  LayerMoments moments = SampleMoments(2, 90, 5);
  moments.key.assign(moments.key.size(), 0);  // no key was ever written
  moments.key_sum.assign(moments.key_sum.size(), 0);
  const std::vector<AutoSide> sides = FitKeys(
      moments, {{}, {.kind = KeyTransformKind::kBalanced, .epsilon = 0, .per_head = true}}, {});
  EXPECT_EQ(sides[0].num_rotations, 1);
  EXPECT_EQ(sides[1].num_rotations, 0);
}

TEST(AutoFit, NamesSayEverything) {
  EXPECT_EQ((KeyRecipe{}).Name(), "oscar shared r_h_pbr");
  EXPECT_EQ((KeyRecipe{.kind = KeyTransformKind::kPairScaled,
                       .power_of_two = true,
                       .per_head = true,
                       .centred = true})
                .Name(),
            "pair_scaled_pow2 per_head centred r_h_pbr");
  EXPECT_EQ(
      (KeyRecipe{.kind = KeyTransformKind::kPairScaled, .folded = false, .per_head = true}).Name(),
      "pair_scaled unfolded per_head r_h_pbr");
  EXPECT_EQ(
      (KeyRecipe{.kind = KeyTransformKind::kBalanced, .epsilon = 0.1, .per_head = true}).Name(),
      "balanced eps 0.1 per_head r_h_pbr");
  EXPECT_EQ((ValueRecipe{.target = ValueTarget::kDiagonal}).Name(), "diagonal shared r_h_pbr");
}

TEST(AutoChoice, JsonRoundTripIsExact) {
  AutoChoice choice;
  choice.made = true;
  choice.keys = {
      .kind = KeyTransformKind::kBalanced, .epsilon = 0.1, .per_head = true, .centred = true};
  choice.values = {.target = ValueTarget::kDiagonal, .per_head = true};
  choice.k_bits = 3;
  choice.k_options = {{.bits = 2, .clip = {0.9, 0.92}, .score = 1.0 / 3, .check = 0.5},
                      {.bits = 3,
                       .clip = {0.96, 0.98},
                       .score = 0.1,
                       .check = 0.2,
                       .ratios = {0.96, 0.98},
                       .curve = {0.1, 0.11},
                       .in_windows = {0.1, 0.7}}};
  choice.v_options = {{.bits = 2, .clip = {0.9}, .score = 0.25, .check = 0.25}};
  choice.windows = {{{64, 256}, 10}, {{0, 0}, 12}};
  choice.k_fallback = "balanced";
  choice.rows = 12;
  choice.stability = {.measured = true, .k_angle = 12.5, .v_kept = 0.75, .unstable = true};
  choice.scores = {{"k", "oscar", 2, 0.92, 64, 1.0 / 7, 0.2}};
  const Json json = ChoiceToJson(choice);
  const AutoChoice read = ChoiceFromJson(ParseStrictJson(json.dump(), "choice"), "choice");
  EXPECT_EQ(ChoiceToJson(read), json);
  EXPECT_EQ(read.keys, choice.keys);
  EXPECT_EQ(read.k_option().clip, (std::vector<double>{0.96, 0.98}));
  EXPECT_EQ(read.scores.at(0).score, 1.0 / 7);
  Json broken = json;
  broken["keys"].erase("centred");
  EXPECT_THROW(ChoiceFromJson(broken, "choice"), InputError);
}

// Two halves that agree, and two that have nothing in common.
TEST(Stability, SeesWhatHalvesShare) {
  const LayerMoments first = SampleMoments(0, 400, 1);
  LayerMoments all = first;
  all.Merge(SampleMoments(0, 400, 2));
  const Stability same = MeasureStability(all, first);
  EXPECT_TRUE(same.measured);
  EXPECT_EQ(same.tokens, 400);
  EXPECT_GT(same.k_kept, kStableShare);
  EXPECT_FALSE(same.unstable);

  LayerMoments mirrored = SampleMoments(0, 400, 2);  // its last channels lead; the mirror's first
  std::vector<double> query = mirrored.query;
  for (size_t head = 0; head < 2; ++head) {
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < 8; ++j)
        mirrored.query[head * 64 + i * 8 + j] = query[head * 64 + (7 - i) * 8 + (7 - j)];
    }
  }
  all = first;
  all.Merge(mirrored);
  const Stability other = MeasureStability(all, first);
  EXPECT_LT(other.k_kept, 0.5);
  EXPECT_GT(other.k_angle, 60);
  EXPECT_TRUE(other.unstable);

  LayerMoments few = SampleMoments(0, 60, 1);
  all = few;
  all.Merge(SampleMoments(0, 60, 2));
  EXPECT_TRUE(MeasureStability(all, few).few_tokens);  // 60 < 20 * 8
}

}  // namespace
}  // namespace oscar
