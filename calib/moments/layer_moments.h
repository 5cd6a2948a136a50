// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The statistics of one layer to which everything is fitted: float64 sums over tokens, so that
// parts of a run can be merged. Trap: members are sums and not means; the accessors divide.
// `diagonal` is weighted by the query covariance of its own tokens and cannot be merged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calib/options.h"
#include "capture/model/spec/rope_spec.h"
#include "linalg/key_transform.h"
#include "linalg/matrix.h"

namespace oscar {

// Rules for folding the scales of keys into a layer's weights. Trap: if all heads share the weights
// (QK-norm), there is one scale vector per layer, even if there is a rotation per head.
struct FoldRules {
  RopePairs pairs;             // rotary_dim 0: nothing can be folded
  bool shared_scales = false;  // one scale vector for all heads
  bool operator==(const FoldRules&) const = default;
};

struct LayerMoments {
  int layer_id = 0;  // layer number in the checkpoint
  int64_t num_q_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;    // d, for queries and keys
  int64_t v_head_dim = 0;  // dv
  int64_t tokens = 0;      // rows seen by every head
  // Tokens whose queries count, the rows of `query` and `attention_output`; negative: all.
  int64_t query_tokens = -1;
  // Whether attention is latent. Keys and values are then the same row, stored once, with one
  // rotation and one clip ratio; `key` and `value` hold the same sums.
  bool latent = false;

  // Row-major, one symmetric matrix per KV head. An empty sum is unknown: either a merge lost it,
  // or the moments come from a rotation file, which only holds the covariances that it was fitted
  // to.
  std::vector<double>
      query;  // [num_kv_heads, d, d]   Σ qᵀq over tokens and the head's gqa_ratio query heads
  std::vector<double> key;      // [num_kv_heads, d, d]   Σ kᵀk
  std::vector<double> key_sum;  // [num_kv_heads, d]      Σ k
  // Sums over the keys that sampled queries read from the quantized part of the cache. A key's
  // weight is w = Σ p (1 - p), where p is the attention of these queries to it. To second order,
  // KL(S || S^) is half of Σ w δ² if the noise δ is independent from key to key. Empty for latents.
  std::vector<double> attended_key;         // [num_kv_heads, d, d]   Σ w kᵀk
  std::vector<double> attended_key_sum;     // [num_kv_heads, d]      Σ w k
  std::vector<double> attended_key_weight;  // [num_kv_heads]         Σ w
  std::vector<double> value;                // [num_kv_heads, dv, dv] Σ vᵀv
  std::vector<double> attention_output;  // [num_kv_heads, dv, dv] Σ oᵀo over tokens and query heads
  std::vector<double>
      diagonal;  // [num_kv_heads, dv, dv] Σ w vᵀv, w = k C_Q kᵀ; empty after a merge
  std::vector<double> diagonal_weight;  // [num_kv_heads]         Σ w
  // Maxima over all tokens, including held-out tokens, for static scales.
  std::vector<double> key_abs_max;    // [num_kv_heads, d]   max |k|
  std::vector<double> value_abs_max;  // [num_kv_heads, dv]  max |v|

  // The model's rope and folding rules, for fits without the model. They are unknown if the moments
  // come from a rotation file or from a file of an older version.
  std::optional<RopeSpec> rope = {};
  FoldRules fold = {};

  int64_t gqa_ratio() const { return num_q_heads / num_kv_heads; }
  int64_t queries() const { return query_tokens < 0 ? tokens : query_tokens; }
  void SetTokens(int64_t all, int64_t with_queries) {
    tokens = all;
    query_tokens = with_queries == all ? -1 : with_queries;
  }

  // Return symmetrized means, [d, d] or [dv, dv]. Throw InputError if the sum is empty.
  Matrix QueryCovariance(int64_t head) const;
  Matrix ValueCovariance(int64_t head, ValueTarget target) const;
  Matrix KeySecondMoment(int64_t head) const;
  Matrix ValueSecondMoment(int64_t head) const;
  Vector KeyMean(int64_t head) const;
  // Return the moments that key transforms are fitted to: those of attended keys. If no query read
  // a quantized key, or if this is unknown, return those of all keys.
  Matrix CachedKeySecondMoment(int64_t head) const;
  Vector CachedKeyMean(int64_t head) const;

  bool KnowsAttendedKeys(int64_t head) const;

  // Adds another part of the same layer. Throws InputError naming the layer if the geometries
  // differ. Drops `diagonal`.
  void Merge(const LayerMoments& other);

  // Throws NumericalError naming layer, head and matrix if a value is NaN or infinite, or if a head
  // has zero energy.
  void CheckFinite() const;
};

// Mean over KV heads of the per-head means: upstream v1 fits the shared rotation to it.
Matrix MeanOverHeads(const std::vector<Matrix>& heads);

}  // namespace oscar
