// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/fit/transform_fit.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::pair<KeyTransformKind, std::string_view> kNames[] = {
    {KeyTransformKind::kOscar, "oscar"},
    {KeyTransformKind::kPairScaled, "pair_scaled"},
    {KeyTransformKind::kBalanced, "balanced"},
};

constexpr int kSharedScaleSteps = 20;  // each step at least halves the error

std::string HeadName(const LayerMoments& moments, int64_t head, const char* what) {
  return fmt::format("layer {}, KV head {}, {}", moments.layer_id, head, what);
}

// Returns the second moment of the quantized keys: S - s (2 - s) m^T m if a share s of their mean m
// is subtracted.
Matrix CachedKeys(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe) {
  const Matrix second = moments.CachedKeySecondMoment(head);
  if (!recipe.centred) return second;
  const double share = recipe.mean_share;
  return Centred(second, std::sqrt(share * (2 - share)) * moments.CachedKeyMean(head));
}

}  // namespace

std::string_view KeyTransformName(KeyTransformKind kind) {
  for (const auto& [value, name] : kNames) {
    if (value == kind) return name;
  }
  OSCAR_CHECK(!"a KeyTransformKind without a name");
  return {};
}

KeyTransformKind KeyTransformFromName(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  throw UsageError(
      fmt::format("unknown key transform \"{}\", expected oscar, pair_scaled or balanced", name));
}

std::string KeyRecipe::Name() const {
  std::string name(KeyTransformName(kind));
  if (power_of_two) name += "_pow2";
  if (!folded) name += " unfolded";
  if (kind == KeyTransformKind::kBalanced) name += fmt::format(" eps {:g}", epsilon);
  if (per_head) name += " per_head";
  if (!per_head) name += " shared";
  if (centred) name += " centred";
  if (centred && mean_share != 1) name += fmt::format(" {:g}", mean_share);
  if (feedback) name += " feedback";
  return fmt::format("{} {}", name, CompositionName(composition));
}

KeyRecipe KeyRecipe::FromName(std::string_view name) {
  KeyRecipe recipe;
  std::istringstream words{std::string(name)};
  std::string word;
  try {
    words >> word;
    recipe.power_of_two = word.ends_with("_pow2");
    if (recipe.power_of_two) word.resize(word.size() - 5);
    recipe.kind = KeyTransformFromName(word);
    while (words >> word) {
      if (word == "unfolded") recipe.folded = false;
      if (word == "per_head") recipe.per_head = true;
      if (word == "centred") {
        recipe.centred = true;
        if (words >> std::ws && std::isdigit(words.peek()) != 0) words >> recipe.mean_share;
      }
      if (word == "eps") words >> recipe.epsilon;
      if (word == "feedback") recipe.feedback = true;
    }
    recipe.composition = CompositionFromName(word);  // the last word
  } catch (const UsageError&) {                      // reported below
  }
  if (recipe.Name() == name) return recipe;
  throw InputError(fmt::format("unknown key recipe {}", Quoted(name)));
}

Vector HeadPairScales(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                      RopePairs pairs) {
  // Rounding may make a centred energy slightly negative instead of zero.
  const Vector keys = CachedKeys(moments, head, recipe).diagonal().cwiseMax(0);
  return PairScales(moments.QueryCovariance(head).diagonal(), keys, {pairs, recipe.power_of_two},
                    HeadName(moments, head, "pair scales"));
}

Vector SharedPairScales(const LayerMoments& moments, const KeyRecipe& recipe, RopePairs pairs) {
  const std::string what = fmt::format("layer {}, pair scales", moments.layer_id);
  const int64_t heads = moments.num_kv_heads, dim = moments.head_dim;
  Matrix queries(dim, heads), keys(dim, heads);  // energies per channel
  for (int64_t head = 0; head < heads; ++head) {
    queries.col(head) = moments.QueryCovariance(head).diagonal();
    keys.col(head) = CachedKeys(moments, head, recipe).diagonal().cwiseMax(0);
  }
  // The optimum satisfies d^4 = sum_h S_h c_h / sum_h C_h s_h, where S_h = tr(D^2 s_h) and C_h =
  // tr(D^-2 c_h).
  PairScaling scaling{pairs, false};
  Vector d = PairScales(queries.rowwise().sum(), keys.rowwise().sum(), scaling, what);
  for (int step = 0; step <= kSharedScaleSteps; ++step) {
    const Vector squares = d.cwiseAbs2();
    const Vector key_traces = keys.transpose() * squares;
    const Vector query_traces = queries.transpose() * squares.cwiseInverse();
    scaling.power_of_two = recipe.power_of_two && step == kSharedScaleSteps;
    d = PairScales(queries * key_traces, keys * query_traces, scaling, what);
  }
  return d;
}

KeyFit FitKeyTransform(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                       RopePairs pairs) {
  const std::string what = HeadName(moments, head, "key transform");
  const Matrix queries = moments.QueryCovariance(head);
  KeyFit fit;
  if (recipe.centred) fit.mean = recipe.mean_share * moments.CachedKeyMean(head);
  switch (recipe.kind) {
    case KeyTransformKind::kOscar:
      fit.transform =
          ScaledRotation(Vector::Ones(moments.head_dim), queries, recipe.composition, what);
      break;
    case KeyTransformKind::kPairScaled:
      fit.transform = ScaledRotation(HeadPairScales(moments, head, recipe, pairs), queries,
                                     recipe.composition, what);
      break;
    case KeyTransformKind::kBalanced:
      fit.transform = BalancedTransform(queries, CachedKeys(moments, head, recipe), recipe.epsilon,
                                        recipe.composition, what);
      break;
  }
  return fit;
}

Matrix OutputMetric(MatrixRef output_projection, const LayerMoments& moments, int64_t head) {
  const int64_t dim = moments.v_head_dim, ratio = moments.gqa_ratio();
  OSCAR_CHECK_EQ(output_projection.cols(), moments.num_q_heads * dim);
  Matrix metric = Matrix::Zero(dim, dim);
  for (int64_t q_head = head * ratio; q_head < (head + 1) * ratio; ++q_head) {
    const auto weight = output_projection.middleCols(q_head * dim, dim);
    metric += weight.transpose() * weight;
  }
  return metric;
}

KeyTransform FitValueTransform(const LayerMoments& moments, int64_t head, MatrixRef output_metric,
                               double epsilon, Composition composition) {
  return BalancedTransform(output_metric, moments.ValueSecondMoment(head), epsilon, composition,
                           HeadName(moments, head, "value transform"));
}

}  // namespace oscar
