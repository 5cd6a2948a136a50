// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// All statistics of one attention layer, computed directly in float64: the reference that the
// streaming statistics on a device must match. Value targets are different matrices:
// `attention_output` is the paper's V^T S^T S V, `diagonal` is what upstream's script computes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "linalg/matrix.h"
#include "tests/reference/attention_rule.h"

namespace oscar {

struct AttentionShape {
  int64_t tokens = 0;        // of all sequences
  int64_t num_q_heads = 0;   // query head j belongs to KV head j / gqa_ratio
  int64_t num_kv_heads = 0;  // divides num_q_heads
  int64_t head_dim = 0;      // of q and k
  int64_t v_head_dim = 0;
  int64_t gqa_ratio() const { return num_q_heads / num_kv_heads; }
};

// Statistics of one KV head. T tokens, r = gqa_ratio; sums over all tokens and r query heads.
struct HeadStatistics {
  Matrix query_covariance;  // C_Q = sum q^T q / (T r)                  [head_dim, head_dim]
  Vector key_mean;          // sum k / T                                [head_dim]
  Matrix key_covariance;    // K^T K / T                                [head_dim, head_dim]
  Matrix value_covariance;  // V^T V / T                                [v_head_dim, v_head_dim]
  // Value targets, all [v_head_dim, v_head_dim]:
  Matrix attention_output;  // sum o^T o / (T r), o = softmax(...) v: the paper's target
  Matrix diagonal;          // V^T diag(w) V / T, w_t = k_t C_Q k_t^T, scaled to mean 1 (upstream)
  Matrix score_diagonal;    // V^T diag(s) V / (T r), s_t = sum of S_it^2: the best weight for
                            // independent errors of the values
};

// q: row-major [tokens, num_q_heads, head_dim], post-RoPE; k: [tokens, num_kv_heads, head_dim];
// v: [tokens, num_kv_heads, v_head_dim]. sequence_lengths (tokens, each > 0) sum to shape.tokens;
// no query sees another sequence. Returns one entry per KV head. Throws NumericalError naming
// `what` (for example "layer 3") and the head, if all keys of a head are orthogonal to C_Q (a dead
// head).
std::vector<HeadStatistics> AttentionStatistics(const AttentionShape& shape,
                                                std::span<const double> q,
                                                std::span<const double> k,
                                                std::span<const double> v,
                                                std::span<const int64_t> sequence_lengths,
                                                const AttentionRule& rule, std::string_view what);

}  // namespace oscar
