// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The loss that refining a rotation minimizes: the change in attention and in its output for the
// last queries of a sequence, with gradients through the quantizer (OptR, arXiv 2608.02691). The
// scores of all sequences stay in memory and take 12 bytes per query head, query and token, so only
// a few queries of each sequence are compared.
#pragma once

#include <ATen/core/Tensor.h>

#include "calib/search/rotation_refinement.h"

namespace oscar {

// One sequence, prepared for comparison. Everything except masks is float32.
struct RefinementSample {
  at::Tensor queries;         // [num_kv_heads, ratio * queries, d]
  at::Tensor keys, centered;  // [num_kv_heads, tokens, d]
  at::Tensor values;          // [num_kv_heads, tokens, dv]
  at::Tensor visible, exact;  // [queries, tokens] bool
  at::Tensor logits;          // [num_kv_heads, ratio, queries, tokens], with exact keys
  at::Tensor log_p, p;        // the same shape, with one more column if the layer has sinks
  at::Tensor weights;         // [queries, 1] with mean 1; undefined: all are 1
  at::Tensor probabilities;   // p~ for values that are not exact, otherwise 0; for value losses
};

class RefinementLoss {
 public:
  RefinementLoss(const RefinementProblem& problem, const RefinementOptions& options,
                 at::Device device);

  RefinementSample PrepareKeys(const RefinementSequence& rows) const;
  // `keys` holds the float32 transforms through which keys are stored, one per KV head. If a
  // sequence is longer than `most_tokens` (0: no limit), each head keeps only the tokens with the
  // largest sums of squared weights; errors of other tokens are ignored.
  RefinementSample PrepareValues(const RefinementSequence& rows, const HeadTransforms& keys,
                                 int64_t most_tokens = 0) const;

  // Return losses [num_kv_heads] that are differentiable in the float32 transforms.
  at::Tensor Keys(const RefinementSample& sample, const HeadTransforms& transforms) const;
  at::Tensor Values(const RefinementSample& sample, const HeadTransforms& transforms) const;

 private:
  at::Tensor LogScores(const at::Tensor& logits) const;
  at::Tensor Logits(const RefinementSample& sample, const at::Tensor& keys) const;
  at::Tensor StoredLogProbabilities(const RefinementSample& sample,
                                    const HeadTransforms& transforms) const;
  at::Tensor OutputSquare(const at::Tensor& x) const;

  AttentionSpec spec_;
  RefinementOptions options_;
  at::Tensor sinks_;     // [num_kv_heads, ratio, 1, 1], if the layer has sinks
  at::Tensor key_mean_;  // [num_kv_heads, 1, d] or undefined
  at::Tensor metric_;    // [num_kv_heads, ratio, dv, dv]: W_O^T W_O / hidden; or undefined
};

}  // namespace oscar
