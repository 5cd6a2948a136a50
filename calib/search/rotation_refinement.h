// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotations refined by gradient descent through attention itself (OptR, arXiv 2608.02691): a head's
// transform B becomes B expm(A - A^T), starting at A = 0. It is trained through the quantizer
// (straight-through) to change attention and its output as little as possible. A few hundred
// queries are easily overfitted, so a head keeps its refinement only if it is better on rows that
// were set aside.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "calib/cache_side.h"  // AffineQuantizer
#include "capture/model/spec/model_spec.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// Rows of one sequence in one layer as attention sees them, of any float type, on one device.
struct RefinementSequence {
  at::Tensor q;             // [tokens, num_q_heads, d], after rope
  at::Tensor k, v;          // [tokens, num_kv_heads, d or dv]
  at::Tensor counted = {};  // [tokens], 0 if a query does not count; undefined: all count
};

struct RefinementRows {
  std::vector<RefinementSequence> fit, held_out;
};

// Sets aside the last quarter of the sequences, at least one; a single sequence is cut in two.
// Throws InputError if there are no sequences, or a single one with fewer than two tokens.
RefinementRows SplitRows(std::vector<RefinementSequence> sequences);

struct RefinementOptions {
  int steps = 80;               // steps of Adam; 0 returns the start
  double learning_rate = 0.02;  // for the first step; falls linearly to 0
  int check_every = 20;         // steps between checks on the rows set aside
  int64_t queries = 64;         // last positions of a sequence, whose queries are compared
  // Number of sequences whose gradients make one step, taken in turn; 0: all. With a falling
  // learning rate, a few sequences teach about as much as all, in less time
  // (export/simulate/RESULTS.md, OptR).
  int64_t k_sequences_per_step = 1, v_sequences_per_step = 2;
  int64_t value_tokens = 512;  // heaviest tokens of a sequence, to which values are fitted; 0: all
  double shift_weight = 1;     // lambda: weight of the output's shift, added to the KL
  CacheWindows windows = {64, 256};  // tokens that these queries read exactly
  AffineQuantizer k = {.clip = {0.96}}, v = {.clip = {0.92}};
};

struct RefinementProblem {
  AttentionSpec attention;  // geometry, scale and sliding window
  RefinementRows rows;
  at::Tensor key_mean;  // [num_kv_heads, d], subtracted from keys before B; undefined: none
  at::Tensor output_projection;  // [hidden, num_q_heads * dv]; undefined: outputs are not projected
};

// A token x is transformed to x B, and back by B^-1.
struct HeadTransforms {
  at::Tensor transform;  // [num_kv_heads or 1, dim, dim]
  at::Tensor inverse;    // the same shape; undefined: the transpose
};

struct RefinedSide {
  HeadTransforms transforms;  // float32: B expm(A - A^T), and its inverse if B has one
  // Losses per KV head on the rows set aside; after <= before, and equal if B was kept.
  std::vector<double> loss_before, loss_after;
};

// Loss: KL(p || p~) + shift_weight * (((p~ - p) V W_O^T)^2), a mean over queries and query heads.
RefinedSide RefineKeys(const RefinementProblem& problem, const HeadTransforms& start,
                       const RefinementOptions& options);

// Loss: mean of ((p~ (V~ - V) W_O^T)^2). p~ reads keys through `keys`, so refine those first.
RefinedSide RefineValues(const RefinementProblem& problem, const HeadTransforms& start,
                         const HeadTransforms& keys, const RefinementOptions& options);

}  // namespace oscar
