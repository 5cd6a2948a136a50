// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares rows of logits with reference rows by the KL between their softmaxes.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

// The logit of a token that a row does not see. It is finite, so that differences are not NaN, and
// its score is still 0.
inline constexpr double kHiddenLogit = -1e30;

// Appends `sinks` (broadcast) to `of_tokens` [..., tokens] as one more column. Returns `of_tokens`
// itself if there are no sinks.
at::Tensor WithSinks(const at::Tensor& of_tokens, const at::Tensor& sinks);

struct LogAndScores {
  at::Tensor log, scores;  // [..., tokens], scores = exp(log)
};

// KL(S || S^) per row [..., tokens], in nats, as the sum of p (e^x - 1 - x), x = log p^ - log p. It
// is never negative, free of cancellation, exactly 0 for equal rows, and finite if the logits are;
// hidden tokens must have kHiddenLogit.
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

// `logits` has the reference's trailing shape, `sinks` is [num_kv_heads, gqa_ratio, 1, 1] or
// undefined. Runs as one kernel on a GPU if the CUDA toolkit was available at build time.
LogitComparison CompareLogits(const ReferenceLogits& own, const at::Tensor& logits,
                              const at::Tensor& sinks, const LogitParts& parts);

}  // namespace oscar
