// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/recipe_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "calib/fit/feedback_fit.h"
#include "calib/fit/fit.h"
#include "calib/moments/position_spread.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"
#include "linalg/eigh.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void Append(const Matrix& m, std::vector<double>& to) {
  const RowMajor rows = m;
  to.insert(to.end(), rows.data(), rows.data() + rows.size());
}
void Append(const Vector& v, std::vector<double>& to) {
  to.insert(to.end(), v.data(), v.data() + v.size());
}

// Compositions without eigenvectors need no data.
bool IsDataFree(Composition composition) {
  return composition == Composition::kPbr || composition == Composition::kHPbr;
}

Matrix Rotated(const Matrix& covariance, Composition composition, const std::string& what) {
  const Eigen::Index dim = covariance.rows();
  if (IsDataFree(composition)) {
    return Compose({.eigenvalues = Vector::Ones(dim), .eigenvectors = Matrix::Identity(dim, dim)},
                   composition)
        .matrix();
  }
  return Compose(SymmetricEigenbasis(covariance, what), composition).matrix();
}

std::vector<Vector> Scales(const LayerMoments& moments, const KeyRecipe& recipe) {
  const FoldRules& fold = moments.fold;
  const auto heads = static_cast<size_t>(moments.num_kv_heads);
  if (recipe.kind != KeyTransformKind::kPairScaled)
    return std::vector<Vector>(heads, Vector::Ones(moments.head_dim));
  if (fold.shared_scales && recipe.folded)
    return std::vector<Vector>(heads, SharedPairScales(moments, recipe, fold.pairs));
  std::vector<Vector> scales;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head)
    scales.push_back(HeadPairScales(moments, head, recipe, fold.pairs));
  return scales;
}

// A matrix of a recipe while it is fitted: for one head, or for all heads.
struct Fit {
  Matrix rotation, query_rotation;  // query_rotation is empty if rotation is orthogonal
};

// The parts of a recipe that need no eigenvectors, and the covariances to which the rest is fitted.
struct KeyProblem {
  CacheSide side;
  std::vector<Matrix> queries;  // [num_rotations], of the scaled heads
};

KeyProblem KeyProblemOf(const LayerMoments& moments, const KeyRecipe& recipe) {
  KeyProblem problem;
  const std::vector<Vector> scales = Scales(moments, recipe);
  CacheSide& side = problem.side;
  side.dim = moments.head_dim;
  const bool folded = recipe.kind == KeyTransformKind::kPairScaled && recipe.folded;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    const Vector& d = scales[static_cast<size_t>(head)];
    const Vector inverse = d.cwiseInverse();
    problem.queries.emplace_back(inverse.asDiagonal() * moments.QueryCovariance(head) *
                                 inverse.asDiagonal());
    if (folded) Append(d, side.pair_scale);
    if (!recipe.centred) continue;
    const Vector mean = recipe.mean_share * moments.CachedKeyMean(head);
    Append(folded ? Vector(d.cwiseProduct(mean)) : mean, side.mean);
  }
  if (!recipe.per_head) {
    OSCAR_CHECK(recipe.folded && recipe.kind != KeyTransformKind::kBalanced);
    problem.queries = {MeanOverHeads(problem.queries)};
  }
  side.num_rotations = std::ssize(problem.queries);
  return problem;
}

// Returns whether the matrix of a recipe is only a rotation.
bool IsRotation(const KeyRecipe& recipe) {
  return recipe.kind != KeyTransformKind::kBalanced && recipe.folded;
}

Fit FitKeyMatrix(const LayerMoments& moments, const KeyRecipe& recipe, const KeyProblem& problem,
                 int64_t index) {
  if (!IsRotation(recipe)) {
    KeyTransform transform = FitKeyTransform(moments, index, recipe, moments.fold.pairs).transform;
    return {std::move(transform.x), transform.inverse.transpose()};
  }
  const std::string what =
      fmt::format("layer {}, KV head {}, {} keys", moments.layer_id, index, recipe.Name());
  return {Rotated(problem.queries[static_cast<size_t>(index)], recipe.composition, what), {}};
}

// Fits the matrices of all recipes on all cores with `fit(recipe, matrix)`. If `same(recipe, other
// recipe, matrix)` says that two fits are equal, only one is computed; for example, centring does
// not change the rotation of queries. If a matrix cannot be fitted, its recipe gets num_rotations
// 0.
template <typename FitOne, typename SameFit>
void FitMatrices(std::vector<CacheSide>& sides, FitOne fit, SameFit same) {
  struct Task {
    size_t recipe;
    int64_t matrix;
    size_t by;  // index of the task that fits it
  };
  std::vector<Task> tasks;
  std::vector<size_t> own;  // tasks that are fitted, without duplicates
  for (size_t i = 0; i < sides.size(); ++i) {
    for (int64_t j = 0; j < sides[i].num_rotations; ++j) {
      const auto known = std::ranges::find_if(own, [&](size_t other) {
        return tasks[other].matrix == j && same(tasks[other].recipe, i, j);
      });
      const bool is_known = known != own.end();
      const size_t by = is_known ? *known : tasks.size();
      if (!is_known) own.push_back(by);
      tasks.push_back({i, j, by});
    }
  }
  std::vector<std::optional<Fit>> fits(tasks.size());
  ParallelFor(std::ssize(own), [&](int64_t index) {
    const size_t i = own[static_cast<size_t>(index)];
    try {
      fits[i] = fit(tasks[i].recipe, tasks[i].matrix);
    } catch (const NumericalError&) {  // the missing fit reports it
    }
  });
  for (const Task& task : tasks) {
    CacheSide& side = sides[task.recipe];
    const std::optional<Fit>& fitted = fits[task.by];
    if (!fitted) {
      side = {};
    } else if (side.num_rotations > 0) {
      Append(fitted->rotation, side.rotation);
      if (fitted->query_rotation.size() > 0) Append(fitted->query_rotation, side.query_rotation);
    }
  }
}

}  // namespace

std::vector<CacheSide> FitKeys(const LayerMoments& moments, const std::vector<KeyRecipe>& recipes) {
  std::vector<KeyProblem> problems(recipes.size());
  std::vector<CacheSide> sides(recipes.size());
  ParallelFor(std::ssize(recipes), [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    try {
      problems[i] = KeyProblemOf(moments, recipes[i]);
      sides[i] = problems[i].side;
    } catch (const NumericalError&) {  // no pair scales: num_rotations 0
    }
  });
  const auto fit = [&](size_t i, int64_t matrix) {
    return FitKeyMatrix(moments, recipes[i], problems[i], matrix);
  };
  const auto same = [&](size_t i, size_t other, int64_t matrix) {
    const auto at = static_cast<size_t>(matrix);
    return IsRotation(recipes[i]) && IsRotation(recipes[other]) &&
           recipes[i].composition == recipes[other].composition &&
           problems[i].queries[at] == problems[other].queries[at];
  };
  FitMatrices(sides, fit, same);
  for (size_t i = 0; i < sides.size(); ++i) {
    if (!recipes[i].feedback || sides[i].num_rotations == 0) continue;
    try {
      FitKeyFeedback(moments, sides[i]);
    } catch (const NumericalError&) {
      sides[i] = {};
    }
  }
  return sides;
}

std::vector<CacheSide> FitValues(const LayerMoments& moments,
                                 const std::vector<ValueRecipe>& recipes) {
  std::vector<std::vector<Matrix>> covariances(recipes.size());
  std::vector<CacheSide> sides(recipes.size());
  for (size_t i = 0; i < recipes.size(); ++i) {
    for (int64_t head = 0; head < moments.num_kv_heads; ++head)
      covariances[i].push_back(moments.ValueCovariance(head, recipes[i].target));
    if (!recipes[i].per_head) covariances[i] = {MeanOverHeads(covariances[i])};
    sides[i].dim = moments.v_head_dim;
    sides[i].num_rotations = std::ssize(covariances[i]);
  }
  const auto fit = [&](size_t i, int64_t matrix) {
    return Fit{Rotated(covariances[i][static_cast<size_t>(matrix)], recipes[i].composition,
                       fmt::format("layer {}, head {}, {} values", moments.layer_id, matrix,
                                   recipes[i].Name())),
               {}};
  };
  FitMatrices(sides, fit, [](size_t, size_t, int64_t) { return false; });
  return sides;
}

std::vector<CacheSide> FitLatents(const LayerMoments& moments,
                                  const std::vector<LatentRecipe>& recipes) {
  std::map<ValueTarget, LayerMoments> joint;
  std::vector<CacheSide> sides;
  for (const LatentRecipe& recipe : recipes) {
    if (!joint.contains(recipe.target))
      joint.emplace(recipe.target, JointMoments(moments, recipe.target));
    sides.push_back(FitKeys(joint.at(recipe.target), {recipe.keys}).at(0));
  }
  return sides;
}

void FitChoices(const LayerMoments& all, std::span<AutoChoice> choices) {
  // Equal recipes are fitted once.
  std::vector<KeyRecipe> keys;
  std::vector<ValueRecipe> values;
  std::vector<LatentRecipe> latents;
  const auto place = [](auto& recipes, const auto& recipe) {
    const auto found = std::ranges::find(recipes, recipe);
    const auto at = static_cast<size_t>(found - recipes.begin());
    if (found == recipes.end()) recipes.push_back(recipe);
    return at;
  };
  std::vector<std::pair<size_t, size_t>> places;
  for (const AutoChoice& choice : choices) {
    if (choice.latent()) {
      const size_t at = place(latents, LatentRecipe{choice.keys, choice.values.target});
      places.emplace_back(at, at);
    } else {
      places.emplace_back(place(keys, choice.keys), place(values, choice.values));
    }
  }
  const AutoChoice& any = choices.front();  // all choices have this context and text length
  std::vector<CacheSide> of_keys, of_values;
  if (any.latent()) {
    of_keys = of_values = FitLatents(all, latents);
  } else {
    const LayerMoments spread = SpreadOverPositions(all, any.text_length, any.context);
    of_keys = FitKeys(spread, keys);
    of_values = FitValues(spread, values);
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    AutoChoice& choice = choices[i];
    choice.k = of_keys[places[i].first];
    choice.v = of_values[places[i].second];
    if (choice.k.num_rotations > 0 && choice.v.num_rotations > 0) continue;
    throw NumericalError(fmt::format("layer {}: the choice made on part of the tokens ({} keys, {} "
                                     "values) cannot be fitted to all of them; give more data",
                                     all.layer_id, choice.keys.Name(), choice.values.Name()),
                         Remedy::kWithoutChoice);
  }
}

LayerMoments OtherHalf(const LayerMoments& all, const LayerMoments& first) {
  LayerMoments second = all;
  const auto subtract = [](std::vector<double>& sums, const std::vector<double>& part) {
    if (part.empty()) sums.clear();
    for (size_t i = 0; i < sums.size(); ++i) sums[i] -= part[i];
  };
  subtract(second.query, first.query);
  subtract(second.key, first.key);
  subtract(second.key_sum, first.key_sum);
  subtract(second.attended_key, first.attended_key);
  subtract(second.attended_key_sum, first.attended_key_sum);
  subtract(second.attended_key_weight, first.attended_key_weight);
  subtract(second.value, first.value);
  subtract(second.attention_output, first.attention_output);
  subtract(second.diagonal, first.diagonal);
  subtract(second.diagonal_weight, first.diagonal_weight);
  // A half without queries counts as empty.
  const int64_t queries = second.queries() - first.queries();
  second.SetTokens(queries == 0 ? 0 : second.tokens - first.tokens, queries);
  return second;
}

Stability CompareHalves(const LayerMoments& first, const LayerMoments& second) {
  Stability stability;
  stability.measured = true;
  stability.tokens = std::min(first.queries(), second.queries());
  stability.few_tokens =
      stability.tokens < kTokensPerDim * std::max(first.head_dim, first.v_head_dim);
  stability.unstable = stability.few_tokens;
  return stability;
}

}  // namespace oscar
