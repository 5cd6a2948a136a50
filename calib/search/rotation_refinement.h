// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotations refined by gradient descent through attention itself (OptR, arXiv 2608.02691): a
// transform B of a head becomes B expm(A - A^T), A = 0 at the start, trained with the quantizer in
// the loop (straight-through) to move attention and its output least. A few hundred queries are
// easily learned by heart, so a head keeps what it learned only where rows that were set aside say
// that it is better.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "calib/cache_side.h"  // AffineQuantizer
#include "capture/model/spec/model_spec.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// Rows of one sequence of one layer as attention sees them, of any float type, on one device.
struct RefinementSequence {
  at::Tensor q;             // [tokens, num_q_heads, d], after rope
  at::Tensor k, v;          // [tokens, num_kv_heads, d or dv]
  at::Tensor counted = {};  // [tokens] 0 where a query does not count; undefined: all count
};

struct RefinementRows {
  std::vector<RefinementSequence> fit, held_out;
};

// Sets aside the last quarter of the sequences, at least one; a single sequence is cut into two.
// Throws InputError if there is none, or a single one of less than two tokens.
RefinementRows SplitRows(std::vector<RefinementSequence> sequences);

struct RefinementOptions {
  int steps = 80;               // of Adam; 0 returns the start
  double learning_rate = 0.02;  // of the first step; falls linearly to 0
  int check_every = 20;         // steps between looks at the rows set aside
  int64_t queries = 64;         // last positions of a sequence that are compared
  // Sequences, taken in turn, whose gradients make a step; 0: all. A few, with a falling rate,
  // learn about as much as all in their share of the time (export/simulate/RESULTS.md, OptR).
  int64_t k_sequences_per_step = 1, v_sequences_per_step = 2;
  int64_t value_tokens = 512;  // of a sequence that values are fitted to, the heaviest; 0: all
  double shift_weight = 1;     // lambda: of the output's shift beside the KL
  CacheWindows windows = {64, 256};  // tokens that the compared queries read exactly
  AffineQuantizer k = {.clip = {0.96}}, v = {.clip = {0.92}};
};

struct RefinementProblem {
  AttentionSpec attention;  // geometry, scale and sliding window
  RefinementRows rows;
  at::Tensor key_mean;           // [num_kv_heads, d] taken from keys before B; undefined: none
  at::Tensor output_projection;  // [hidden, num_q_heads * dv]; undefined: outputs are compared
};

// A token x is transformed to x B, and back by B^-1.
struct HeadTransforms {
  at::Tensor transform;  // [num_kv_heads or 1, dim, dim]
  at::Tensor inverse;    // the same shape; undefined: the transpose
};

struct RefinedSide {
  HeadTransforms transforms;  // float32: B expm(A - A^T), and its inverse where B has one
  // Losses over the rows set aside, per KV head; after <= before, and equal where B was kept.
  std::vector<double> loss_before, loss_after;
};

// KL(p || p~) + shift_weight * mean of (((p~ - p) V W_O^T)^2), a mean over queries and query heads.
RefinedSide RefineKeys(const RefinementProblem& problem, const HeadTransforms& start,
                       const RefinementOptions& options);

// mean of ((p~ (V~ - V) W_O^T)^2), where p~ reads keys through `keys`: refine those first.
RefinedSide RefineValues(const RefinementProblem& problem, const HeadTransforms& start,
                         const HeadTransforms& keys, const RefinementOptions& options);

}  // namespace oscar
