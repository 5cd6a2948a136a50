// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares rows of logits with reference rows by the KL between their softmaxes.
#pragma once

#include <ATen/core/Tensor.h>

#include "calib/cache/kernel_arguments.h"  // kHiddenLogit

namespace oscar {

// Appends `sinks` (broadcast) to `of_tokens` [..., tokens] as one more column. Returns `of_tokens`
// itself if there are no sinks.
at::Tensor WithSinks(const at::Tensor& of_tokens, const at::Tensor& sinks);

// Sets the logits of hidden tokens to kHiddenLogit; `hidden` is bool and broadcast.
void Hide(at::Tensor& logits, const at::Tensor& hidden);

struct LogAndScores {
  at::Tensor log, scores;  // [..., tokens], scores = exp(log)
};

// Logits that rows read from a cache, [..., num_kv_heads, gqa_ratio, rows, tokens].
struct CacheLogits {
  at::Tensor logits;
  // Bool [rows, tokens] or [sequences, 1, 1, rows, tokens]. Where it is true, a row reads the logit
  // from `exact`, or does not see the token if `exact` is undefined. Undefined: false everywhere.
  at::Tensor kept = {};
  at::Tensor exact = {};  // as `logits`, or without its first dimension

  at::Tensor Read() const;  // merges `logits` and `exact` into one tensor
};

// The softmax over tokens and `sinks`, with its logarithm.
LogAndScores SoftmaxOf(const CacheLogits& cache, const at::Tensor& sinks);

// Returns KL(S || S^) per row [..., tokens], in nats, as the sum of p (e^x - 1 - x), x = log p^ -
// log p. This sum is never negative, has no cancellation, and is exactly 0 for equal rows. It is
// finite if all logits are finite, so hidden tokens must have the logit kHiddenLogit.
at::Tensor KlOfRows(const LogAndScores& own, const LogAndScores& other);

struct ReferenceLogits {
  LogAndScores p;  // [..., num_kv_heads, gqa_ratio, rows, tokens], with one more column if there
                   // are sinks
  at::Tensor logits = {};  // [..., tokens]; undefined if no logit errors are wanted
};

// Optional results in addition to the KL.
struct LogitParts {
  bool scores = false, kl_terms = false, logit_errors = false;
};

struct LogitComparison {
  at::Tensor kl;                    // [..., rows]
  at::Tensor scores = {};           // [..., rows, columns] softmax of `logits`
  at::Tensor kl_terms = {};         // [..., rows, columns], never negative; their sum is kl
  at::Tensor logit_errors_sq = {};  // [..., rows]: sum of (logit^ - logit)^2
};

// Compares `cache` with the reference. The cache's logits have the reference's shape, possibly with
// more dimensions in front. `sinks`: [num_kv_heads, gqa_ratio, 1, 1] or undefined. The KL is
// exactly 0 for logits equal to those from which SoftmaxOf made the reference. Runs as one kernel
// on a CPU, and on a GPU if oscar was built with the CUDA toolkit.
LogitComparison CompareLogits(const ReferenceLogits& own, const CacheLogits& cache,
                              const at::Tensor& sinks, const LogitParts& parts);

}  // namespace oscar
