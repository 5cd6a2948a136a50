// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares attention over a quantized cache with attention over the exact one, per query row: KL(S
// || S^), output error and logit error, on any device, in float64 or float32. Scalar reference:
// tests/reference/scalar_attention_kl.h. A score matrix is [rows, tokens]. Callers compare slices
// of the rows (RowsPerSlice), so that these matrices stay small for any context length.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "calib/cache/exact_tokens.h"
#include "calib/cache/logit_comparison.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// A subset of query rows of one sequence.
struct QueryRows {
  at::Tensor positions;  // [rows] int64, in the sequence; on the host, to avoid waiting for the
                         // device
  at::Tensor queries;    // [rows, num_q_heads, d]
  at::Tensor q_pe = {};  // [rows, num_q_heads, rope_dim], for latent attention
};

// The keys and values of one sequence that attention reads from a quantized cache, [tokens,
// num_kv_heads, dim] each. Tokens that are read exactly come from `k` and `v`, or from the
// reference if these are undefined.
struct StoredCache {
  at::Tensor k_stored = {}, v_stored = {};
  at::Tensor k = {}, v = {};
};

// Distances from a query to a key, by powers of two. Bucket b holds distances in [DistanceFrom(b),
// DistanceFrom(b + 1)): 0 to 63, 64 to 127, ..., 32768 and beyond.
inline constexpr int kDistanceBuckets = 11;
constexpr int64_t DistanceFrom(int bucket) {
  if (bucket == kDistanceBuckets) return std::numeric_limits<int64_t>::max();
  return bucket == 0 ? 0 : int64_t{64} << (bucket - 1);
}

// Attention mass and KL of a row, split by the distance between query and key: float64,
// [num_kv_heads, gqa_ratio, rows, kDistanceBuckets + 1]. The last bucket is for the layer's
// attention sinks.
struct DistanceErrors {
  at::Tensor mass;  // sum of the reference's scores
  at::Tensor kl;    // sum of p log(p / p^) - p + p^; all buckets add up to the row's KL
};

// Errors per query row and head, [num_kv_heads, gqa_ratio, rows] in the dtype of the comparison. If
// several caches share their keys, errors that depend on values have one more dimension at the end.
struct RowErrors {
  at::Tensor kl;               // nats
  at::Tensor output_error_sq;  // |P^ V^ - P V|^2
  // Filled only with RowDetail::kAll:
  at::Tensor k_term_sq;             // |(P^ - P) V|^2: the effect of wrong scores
  at::Tensor v_term_sq;             // |P^ (V^ - V)|^2: the effect of wrong values
  at::Tensor logit_error_sq;        // sum over visible keys of (scaled logit^ - logit)^2
  DistanceErrors by_distance = {};  // only if requested
};

// Properties of the reference's own attention, to which errors are compared.
struct ReferenceRows {
  at::Tensor output_sq;     // |P V|^2, as in RowErrors
  at::Tensor logit_sq;      // sum over visible keys; only with RowDetail::kAll
  at::Tensor visible_keys;  // [rows] int64
};

enum class RowDetail {
  kKlAndOutput,  // takes a third of the time of kAll
  kAll
};

// Returns whether each row sees a quantized key: bool [rows]. Rows that see none have no error.
at::Tensor BeyondWindows(const at::Tensor& positions, const CacheWindows& windows,
                         const AttentionSpec& spec);

// Returns the number of query rows whose scores take about `bytes`, at `element_bytes` each.
int64_t RowsPerSlice(const AttentionSpec& spec, int64_t tokens, int64_t element_bytes,
                     int64_t bytes);

// Compares rows of one sequence of one layer.
class RowComparison {
 public:
  // Computes in `dtype`, kDouble or kFloat. keys [tokens, num_kv_heads, d], values [tokens,
  // num_kv_heads, dv].
  RowComparison(const AttentionSpec& spec, const at::Tensor& keys, const at::Tensor& values,
                at::ScalarType dtype, RowDetail detail = RowDetail::kAll);
  // For latent attention: k_pe [tokens, rope_dim] is part of every logit and is never quantized.
  // Call before SetRows, whose rows must then have q_pe.
  void SetPositionKeys(const at::Tensor& k_pe) { k_pe_ = k_pe.to(dtype_); }
  // For latent attention: output errors are measured after each query head's output matrix,
  // [num_q_heads, outputs, dv]. Call before SetRows.
  void SetOutputMap(const at::Tensor& map) { output_map_ = map.to(dtype_); }

  // Sets the rows for the comparisons that follow. Keys after the last row are skipped, so slices
  // of ascending rows are cheaper than all rows at once.
  void SetRows(const QueryRows& rows);
  const ReferenceRows& reference() const { return reference_; }

  // A stored cache, or one side of it, in the form that Compare() reads. Made once per sequence.
  struct Prepared {
    at::Tensor k_stored;  // [num_kv_heads, tokens, d]
    at::Tensor k;         // [num_kv_heads, tokens, d]; undefined: those of the reference
    at::Tensor values;    // [num_kv_heads, tokens, 2 dv]: stored and, with kAll, the reference's
    at::Tensor exact_minus_stored;  // for values [num_kv_heads, tokens, dv]
  };
  Prepared Prepare(const StoredCache& stored) const;
  // Combines caches that have the keys of the first one and their own values. Keys, which take most
  // of the time, are then processed once. Only for kKlAndOutput. RowErrors get one more dimension.
  static Prepared WithValuesOf(std::span<const Prepared> caches);

  // Whether each seen token is exact for a row: bool [rows, seen]; undefined: none is.
  struct ExactMasks {
    at::Tensor k, v;
    at::Tensor k_or_hidden = {};  // exact or hidden tokens; undefined: only hidden ones
  };
  ExactMasks MasksOf(const ExactSides& exact) const;

  // Returns one result for each set of exact tokens in `exact`; logits are computed once for all
  // sets. `own_queries` [rows, num_q_heads, d] are the queries for the stored keys; undefined: the
  // reference's. `apart`: index of the set whose KL is also split by distance.
  std::vector<RowErrors> Compare(const Prepared& stored, const at::Tensor& own_queries,
                                 std::span<const ExactMasks> exact,
                                 std::optional<size_t> apart = {}) const;
  std::vector<RowErrors> Compare(const Prepared& stored, const at::Tensor& own_queries,
                                 std::span<const ExactSides> exact,
                                 std::optional<size_t> apart = {}) const;

 private:
  at::Tensor Heads(const at::Tensor& rows) const;
  at::Tensor Queries(const at::Tensor& queries) const;
  at::Tensor Products(const at::Tensor& queries, const at::Tensor& keys) const;
  at::Tensor Logits(const at::Tensor& queries, const at::Tensor& keys) const;
  at::Tensor OfTokens(const at::Tensor& scores) const { return scores.narrow(-1, 0, num_seen_); }
  // Narrows [num_kv_heads, tokens, dim] to the tokens that some row sees.
  at::Tensor Seen(const at::Tensor& heads) const { return heads.narrow(1, 0, num_seen_); }
  at::Tensor OutputEnergy(const at::Tensor& outputs) const;
  RowErrors Errors(const CacheLogits& logits, const at::Tensor& exact_values,
                   const Prepared& stored, bool apart) const;
  // [num_kv_heads, gqa_ratio, rows, seen]
  DistanceErrors ByDistance(const at::Tensor& kl_of_tokens) const;

  const AttentionSpec& spec_;
  at::ScalarType dtype_;
  RowDetail detail_;
  at::Tensor k_, v_;            // [num_kv_heads, tokens, dim]
  at::Tensor positions_;        // [rows] int64, host
  int64_t num_seen_ = 0;        // tokens up to the last row
  at::Tensor k_pe_;             // [tokens, rope_dim], or undefined
  at::Tensor output_map_;       // [num_q_heads, outputs, dv], or undefined
  at::Tensor position_logits_;  // [num_kv_heads, gqa_ratio, rows, seen], if there is k_pe
  at::Tensor sinks_;            // [num_kv_heads, gqa_ratio, 1, 1], if the layer has them
  at::Tensor hidden_;           // [rows, seen] bool
  ReferenceLogits own_;
  at::Tensor queries_, output_;
  ReferenceRows reference_;
};

}  // namespace oscar
