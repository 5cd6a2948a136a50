// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests recipes and their fits: names, JSON, and the properties that transforms must keep.
#include "calib/choose/recipe_fit.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "calib/choose/recipes.h"
#include "calib/fit/transform_fit.h"
#include "linalg/base/error.h"
#include "linalg/eigh.h"
#include "linalg/rotation.h"
#include "tests/calib/choose/sample_choice.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix MatrixAt(const std::vector<double>& values, int64_t index, int64_t dim) {
  return Eigen::Map<const RowMajor>(values.data() + index * dim * dim, dim, dim);
}
Vector RowAt(const std::vector<double>& values, int64_t index, int64_t dim) {
  return Eigen::Map<const Vector>(values.data() + index * dim, dim);
}

// Returns q k^T computed with a head's transform. For centred keys, adds the product of query and
// mean back.
double Logit(const CacheSide& side, int64_t head, const Vector& q, const Vector& k) {
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

CacheSide FitOne(LayerMoments moments, const KeyRecipe& recipe, const FoldRules& fold) {
  moments.fold = fold;
  return FitKeys(moments, {recipe}).at(0);
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
      const CacheSide side = FitOne(moments, recipe, {{.rotary_dim = 8}, shared});
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

// The complete transform of a head, including folded scales: the cache stores (k - mean) X.
struct Whole {
  Matrix x, query;  // a query is multiplied by `query`
  Vector mean;
};
Whole WholeOf(const CacheSide& side, int64_t head) {
  const int64_t matrix = side.num_rotations == 1 ? 0 : head;
  const Vector d = side.pair_scale.empty() ? Vector(Vector::Ones(side.dim))
                                           : RowAt(side.pair_scale, head, side.dim);
  const Matrix m = MatrixAt(side.rotation, matrix, side.dim);
  const Matrix mq =
      side.query_rotation.empty() ? m : MatrixAt(side.query_rotation, matrix, side.dim);
  return {d.asDiagonal() * m, d.cwiseInverse().asDiagonal() * mq,
          side.mean.empty() ? Vector() : RowAt(side.mean, head, side.dim).cwiseQuotient(d)};
}

TEST(AutoFit, EveryHeadsFitIsThatOfItsRecipe) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  std::vector<KeyRecipe> recipes = AllRecipes();
  recipes.push_back({.per_head = true, .composition = Composition::kRH});
  recipes.push_back({.kind = KeyTransformKind::kBalanced, .epsilon = 0.3, .per_head = true});
  int compared = 0;
  for (const KeyRecipe& recipe : recipes) {
    if (!recipe.per_head) continue;
    const CacheSide side = FitOne(moments, recipe, {{.rotary_dim = 8}, false});
    for (int64_t head = 0; head < 2; ++head) {
      const KeyFit expected = FitKeyTransform(moments, head, recipe, {.rotary_dim = 8});
      const Whole found = WholeOf(side, head);
      EXPECT_LT((found.x - expected.transform.x).norm(), 1e-9 * found.x.norm()) << recipe.Name();
      EXPECT_LT((found.query - expected.transform.inverse.transpose()).norm(),
                1e-9 * found.query.norm())
          << recipe.Name();
      ASSERT_EQ(found.mean.size(), expected.mean.size()) << recipe.Name();
      EXPECT_TRUE(!recipe.centred || (found.mean - moments.KeyMean(head)).norm() < 1e-12);
      ++compared;
    }
  }
  EXPECT_GE(compared, 16);
}

// Recipes with equal matrices share one fit, which does not change any result.
TEST(AutoFit, TogetherIsAlone) {
  LayerMoments moments = SampleMoments(2, 90, 5);
  const FoldRules fold{.pairs = {.rotary_dim = moments.head_dim}, .shared_scales = true};
  moments.fold = fold;
  const std::vector<KeyRecipe> recipes = AllRecipes();
  const std::vector<CacheSide> together = FitKeys(moments, recipes);
  for (size_t i = 0; i < recipes.size(); ++i) {
    const CacheSide alone = FitOne(moments, recipes[i], fold);
    EXPECT_GT(alone.num_rotations, 0);
    EXPECT_EQ(together[i].num_rotations, alone.num_rotations) << recipes[i].Name();
    EXPECT_EQ(together[i].rotation, alone.rotation) << recipes[i].Name();
    EXPECT_EQ(together[i].query_rotation, alone.query_rotation) << recipes[i].Name();
    EXPECT_EQ(together[i].pair_scale, alone.pair_scale) << recipes[i].Name();
    EXPECT_EQ(together[i].mean, alone.mean) << recipes[i].Name();
  }
}

TEST(AutoFit, ASharedFitFlattensTheMeanOfItsHeads) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  for (const bool scaled : {false, true}) {
    const KeyTransformKind kind = scaled ? KeyTransformKind::kPairScaled : KeyTransformKind::kOscar;
    const CacheSide side = FitOne(moments, {.kind = kind}, {{.rotary_dim = 8}, false});
    ASSERT_EQ(side.num_rotations, 1);
    std::vector<Matrix> queries;
    for (int64_t head = 0; head < 2; ++head) {
      const Vector d =
          scaled ? RowAt(side.pair_scale, head, 8).cwiseInverse() : Vector(Vector::Ones(8));
      queries.emplace_back(d.asDiagonal() * moments.QueryCovariance(head) * d.asDiagonal());
    }
    const Matrix r = MatrixAt(side.rotation, 0, 8);
    EXPECT_NEAR(ImportanceMaxOverMean(r, MeanOverHeads(queries)), 1, 1e-9);
    EXPECT_GT(ImportanceMaxOverMean(r, queries[0]), 1 + 1e-4);
  }
}

TEST(AutoFit, ValuesAreFittedToTheTargetTheirRecipeNames) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  for (const ValueTarget target : {ValueTarget::kAttentionOutput, ValueTarget::kDiagonal}) {
    const std::vector<CacheSide> sides =
        FitValues(moments, {{.target = target}, {.target = target, .per_head = true}});
    ASSERT_EQ(sides[0].num_rotations, 1);
    ASSERT_EQ(sides[1].num_rotations, 2);
    const std::vector<Matrix> heads = {moments.ValueCovariance(0, target),
                                       moments.ValueCovariance(1, target)};
    const Matrix shared = MatrixAt(sides[0].rotation, 0, 4);
    EXPECT_NEAR(ImportanceMaxOverMean(shared, MeanOverHeads(heads)), 1, 1e-9);
    EXPECT_GT(ImportanceMaxOverMean(shared, heads[1]), 1 + 1e-4);
    for (int64_t head = 0; head < 2; ++head) {
      const Matrix own = MatrixAt(sides[1].rotation, head, 4);
      EXPECT_NEAR(ImportanceMaxOverMean(own, heads[static_cast<size_t>(head)]), 1, 1e-9);
    }
  }
}

TEST(AutoFit, MatricesHaveTheOrderOfFactorsOfTheirRecipe) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  for (const Composition order : AllCompositions()) {
    const auto expected = [&](const Matrix& covariance) {
      return Compose(SymmetricEigenbasis(covariance, "test"), order).matrix();
    };
    const CacheSide values = FitValues(moments, {{.per_head = true, .composition = order}}).at(0);
    const CacheSide keys = FitOne(moments, {.per_head = true, .composition = order}, {});
    for (int64_t head = 0; head < 2; ++head) {
      EXPECT_LT((MatrixAt(values.rotation, head, 4) -
                 expected(moments.ValueCovariance(head, ValueTarget::kAttentionOutput)))
                    .norm(),
                1e-12)
          << CompositionName(order);
      EXPECT_LT((MatrixAt(keys.rotation, head, 8) - expected(moments.QueryCovariance(head))).norm(),
                1e-12)
          << CompositionName(order);
    }
  }
}

TEST(AutoFit, FoldedScalesCommuteWithRopeAndAreSharedWhereWeightsAre) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  const KeyRecipe recipe{.kind = KeyTransformKind::kPairScaled, .per_head = true};
  for (const bool shared : {false, true}) {
    const CacheSide side = FitOne(moments, recipe, {{.rotary_dim = 8}, shared});
    ASSERT_EQ(side.pair_scale.size(), 16u);
    const Vector first = RowAt(side.pair_scale, 0, 8), second = RowAt(side.pair_scale, 1, 8);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(first[i], first[i + 4]);
    EXPECT_EQ(first == second, shared);
    EXPECT_GT(first.maxCoeff() / first.minCoeff(), 1.02);  // the sample's channels differ
  }
  // Scales that are not folded need not be shared and are not stored as pair_scale.
  KeyRecipe unfolded = recipe;
  unfolded.folded = false;
  const CacheSide side = FitOne(moments, unfolded, {{.rotary_dim = 8}, true}),
                  own = FitOne(moments, unfolded, {{.rotary_dim = 8}, false});
  EXPECT_TRUE(side.pair_scale.empty());
  EXPECT_EQ(side.query_rotation.size(), side.rotation.size());
  EXPECT_EQ(side.rotation, own.rotation);
}

// Powers of two scale without rounding, so a model with folded scales computes the same bits.
TEST(Recipes, WhatIsFoldedIsScaledByPowersOfTwo) {
  for (const bool matrix : {false, true}) {
    const ConsumerRules rules{.consumer = {},
                              .name = "x",
                              .per_head = true,
                              .key_mean = true,
                              .query_matrix = matrix,
                              .clip = {},
                              .any_bits = true};
    const RecipeLimits limits{.rules = rules, .rope = true, .fold = true, .num_kv_heads = 2};
    std::vector<KeyRecipe> recipes = FirstKeyRecipes(limits);
    for (const KeyRecipe& more : MoreKeyRecipes(limits, recipes.back())) recipes.push_back(more);
    int folded = 0;
    for (const KeyRecipe& recipe : recipes) {
      if (recipe.kind != KeyTransformKind::kPairScaled || !recipe.folded) continue;
      ++folded;
      EXPECT_TRUE(recipe.power_of_two) << recipe.Name();
    }
    EXPECT_GE(folded, 4);
  }
}

TEST(AutoFit, ARecipeWithoutAFitIsLeftOut) {
  LayerMoments moments = SampleMoments(2, 90, 5);
  moments.key.assign(moments.key.size(), 0);  // all keys are zero
  moments.key_sum.assign(moments.key_sum.size(), 0);
  const std::vector<CacheSide> sides =
      FitKeys(moments, {{}, {.kind = KeyTransformKind::kBalanced, .epsilon = 0, .per_head = true}});
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
  choice.k_options = {{.bits = 2,
                       .clip = {0.9, 0.92},
                       .score = 1.0 / 3,
                       .check = 0.5,
                       .in_windows = {1.0 / 3, 2.0}},
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
  choice.stability = {.measured = true, .k_cost = 12.5, .unstable = true};
  choice.scores = {{"k", "oscar", 2, 0.92, 64, 1.0 / 7, 0.2}};
  const Json json = ChoiceToJson(choice);
  const AutoChoice read = ChoiceFromJson(ParseStrictJson(json.dump(), "choice"), "choice");
  EXPECT_EQ(ChoiceToJson(read), json);
  EXPECT_EQ(read.keys, choice.keys);
  EXPECT_EQ(read.k_option().clip, (std::vector<double>{0.96, 0.98}));
  EXPECT_EQ(read.scores.at(0).score, 1.0 / 7);
}

TEST(AutoChoice, ARatioTakesItsScoresAlong) {
  SideOption option{.clip = {0.9, 0.94},
                    .score = 1,
                    .check = 2,
                    .ratios = {0.9, 0.94},
                    .curve = {3, 4},
                    .check_curve = {5, 6},
                    .in_windows = {7},
                    .windows_curve = {{8}, {9}}};
  option.SetRatio(0.94);
  EXPECT_EQ(option.clip, std::vector<double>{0.94});
  EXPECT_EQ(option.score, 4);
  EXPECT_EQ(option.check, 6);
  EXPECT_EQ(option.in_windows, std::vector<double>{9});
}

TEST(AutoChoice, AMemberThatIsMissingOrMakesNoSenseIsNamed) {
  const LayerMoments moments = SampleMoments(2, 90, 5);
  const Json json = ChoiceToJson(SampleChoice(moments, SampleRecipes().back()));
  const auto message = [&](const std::function<void(Json&)>& edit) {
    Json broken = json;
    edit(broken);
    return ErrorOf<InputError>([&] { ChoiceFromJson(broken, "file"); });
  };
  EXPECT_EQ(message([](Json&) {}), "");
  const struct {
    std::function<void(Json&)> edit;
    const char* said;
  } cases[] = {
      {[](Json& j) { j["keys"].erase("centred"); }, "centred"},
      {[](Json& j) { j["keys"]["transform"] = "rotated"; }, "file: "},
      {[](Json& j) { j["values"]["target"] = 3; }, "target"},
      {[](Json& j) { j["k_bits"] = 7; }, "k_options has no element with the chosen 7 bits"},
      {[](Json& j) { j["v_options"] = Json::array(); },
       "v_options has no element with the chosen 2 bits"},
      {[](Json& j) { j["k_options"][1]["bits"] = 2; }, "k_options should have ascending bits"},
      {[](Json& j) { j["k_options"][0]["clip"] = Json::array(); }, "one clip ratio each"},
      {[](Json& j) { j["k_options"][0]["clip"] = {"x"}; }, "clip is not a list of numbers"},
      {[](Json& j) {
         j["k_options"][0]["curve"] = {1, 2, 3};
       },
       "a score for each clip ratio"},
      {[](Json& j) { j["k_options"][0]["in_windows"] = {1}; }, "a score for each of the windows"},
      {[](Json& j) { j["windows"] = Json::array(); }, "each of the windows"},
      {[](Json& j) { j.erase("guard"); }, "guard"},
  };
  for (const auto& broken : cases) EXPECT_TRUE(Says(message(broken.edit), broken.said));
}

}  // namespace
}  // namespace oscar
