// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/moments/layer_moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns the mean of one head's sum, symmetrized.
Matrix Head(const LayerMoments& moments, const char* name, const std::vector<double>& sums,
            int64_t head, int64_t dim, double count) {
  if (sums.empty()) {
    throw InputError(
        fmt::format("layer {}: these moments contain no {}; imported rotation files lack it, and a "
                    "merge drops the diagonal value target, because its weights k C_Q kᵀ depend on "
                    "the tokens of a single run",
                    moments.layer_id, name));
  }
  OSCAR_CHECK_LE((head + 1) * dim * dim, static_cast<int64_t>(sums.size()));
  const Eigen::Map<const Matrix> sum(sums.data() + head * dim * dim, dim, dim);
  return (sum + sum.transpose()) * (0.5 / count);
}

void AddTo(std::vector<double>& sums, const std::vector<double>& other) {
  if (sums.size() != other.size()) {  // a sum that one part lacks is unknown in the result
    sums.clear();
    return;
  }
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other[i];
}

void MaxWith(std::vector<double>& maxima, const std::vector<double>& other) {
  if (maxima.size() != other.size()) maxima.clear();
  for (size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::max(maxima[i], other[i]);
}

}  // namespace

Matrix LayerMoments::QueryCovariance(int64_t head) const {
  return Head(*this, "query covariance", query, head, head_dim,
              static_cast<double>(queries() * gqa_ratio()));
}

Matrix LayerMoments::ValueCovariance(int64_t head, ValueTarget target) const {
  if (target == ValueTarget::kAttentionOutput) {
    return Head(*this, "value target attention_output", attention_output, head, v_head_dim,
                static_cast<double>(queries() * gqa_ratio()));
  }
  const double weight = diagonal.empty() ? 1 : diagonal_weight[static_cast<size_t>(head)];
  return Head(*this, "value target diagonal", diagonal, head, v_head_dim, weight);
}

Matrix LayerMoments::KeySecondMoment(int64_t head) const {
  return Head(*this, "key second moment", key, head, head_dim, static_cast<double>(tokens));
}

Matrix LayerMoments::ValueSecondMoment(int64_t head) const {
  return Head(*this, "value second moment", value, head, v_head_dim, static_cast<double>(tokens));
}

Vector LayerMoments::KeyMean(int64_t head) const {
  OSCAR_CHECK(!key_sum.empty());
  return Eigen::Map<const Vector>(key_sum.data() + head * head_dim, head_dim) /
         static_cast<double>(tokens);
}

bool LayerMoments::KnowsAttendedKeys(int64_t head) const {
  return !attended_key_weight.empty() && attended_key_weight[static_cast<size_t>(head)] > 0;
}

Matrix LayerMoments::CachedKeySecondMoment(int64_t head) const {
  if (!KnowsAttendedKeys(head)) return KeySecondMoment(head);
  return Head(*this, "second moment of attended keys", attended_key, head, head_dim,
              attended_key_weight[static_cast<size_t>(head)]);
}

Vector LayerMoments::CachedKeyMean(int64_t head) const {
  if (!KnowsAttendedKeys(head)) return KeyMean(head);
  return Eigen::Map<const Vector>(attended_key_sum.data() + head * head_dim, head_dim) /
         attended_key_weight[static_cast<size_t>(head)];
}

void LayerMoments::Merge(const LayerMoments& other) {
  const auto geometry = [](const LayerMoments& m) {
    return fmt::format("layer {}, {} query heads, {} KV heads, head_dim {}, v_head_dim {}{}",
                       m.layer_id, m.num_q_heads, m.num_kv_heads, m.head_dim, m.v_head_dim,
                       m.latent ? ", latents" : "");
  };
  if (geometry(*this) != geometry(other)) {
    throw InputError(fmt::format("cannot merge moments of different layers: {} and {}",
                                 geometry(*this), geometry(other)));
  }
  AddTo(query, other.query);
  AddTo(key, other.key);
  AddTo(key_sum, other.key_sum);
  AddTo(attended_key, other.attended_key);
  AddTo(attended_key_sum, other.attended_key_sum);
  AddTo(attended_key_weight, other.attended_key_weight);
  AddTo(value, other.value);
  AddTo(attention_output, other.attention_output);
  MaxWith(key_abs_max, other.key_abs_max);
  MaxWith(value_abs_max, other.value_abs_max);
  diagonal.clear();
  diagonal_weight.clear();
  SetTokens(tokens + other.tokens, queries() + other.queries());
  if (!rope) {
    rope = other.rope;
    fold = other.fold;
  }
}

void LayerMoments::CheckFinite() const {
  if (tokens <= 0 || queries() <= 0)
    throw NumericalError(fmt::format("layer {}: no tokens were observed", layer_id));
  const auto check = [&](const char* name, const std::vector<double>& sums, int64_t per_head,
                         bool may_be_zero = false) {
    for (int64_t head = 0; head * per_head < static_cast<int64_t>(sums.size()); ++head) {
      double energy = 0;
      for (int64_t i = 0; i < per_head; ++i)
        energy += std::abs(sums[static_cast<size_t>(head * per_head + i)]);
      if (!std::isfinite(energy) || (energy == 0 && !may_be_zero)) {
        throw NumericalError(
            fmt::format("layer {}, KV head {}: the {} sums over {} tokens are {}, expected finite "
                        "sums that are not all zero; check the checkpoint and the compute dtype",
                        layer_id, head, name, tokens, energy == 0 ? "all zero" : "not finite"),
            Remedy::kWiderFloats);
      }
    }
  };
  check("query", query, head_dim * head_dim);
  check("key", key, head_dim * head_dim);
  check("value", value, v_head_dim * v_head_dim);
  check("attention output", attention_output, v_head_dim * v_head_dim);
  check("diagonal", diagonal, v_head_dim * v_head_dim);
  constexpr bool kMayBeZero = true;
  check("key mean", key_sum, head_dim, kMayBeZero);
  check("attended keys", attended_key, head_dim * head_dim, kMayBeZero);
  check("mean of attended keys", attended_key_sum, head_dim, kMayBeZero);
  check("weight of attended keys", attended_key_weight, 1, kMayBeZero);
  check("diagonal weight", diagonal_weight, 1, kMayBeZero);
  check("largest key", key_abs_max, head_dim, kMayBeZero);
  check("largest value", value_abs_max, v_head_dim, kMayBeZero);
}

Matrix MeanOverHeads(const std::vector<Matrix>& heads) {
  OSCAR_CHECK(!heads.empty());
  Matrix mean = heads[0];
  for (size_t i = 1; i < heads.size(); ++i) mean += heads[i];
  return mean / static_cast<double>(heads.size());
}

}  // namespace oscar
