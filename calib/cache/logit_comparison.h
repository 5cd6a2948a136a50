// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of logits against those of a reference: the KL of their softmaxes.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

// Of a token that a row does not see: its score is 0 all the same, and differences are no NaN.
inline constexpr double kHiddenLogit = -1e30;

// `of_tokens` [..., tokens] and one more column, what `sinks` holds for it (broadcast); the same
// tensor where there are none.
at::Tensor WithSinks(const at::Tensor& of_tokens, const at::Tensor& sinks);

struct LogAndScores {
  at::Tensor log, scores;  // [..., tokens], scores = exp(log)
};

// KL(S || S^) per row [..., tokens], in nats, as the sum of p (e^x - 1 - x), x = log p^ - log p:
// never negative, free of cancellation, exactly 0 where nothing differs, and finite wherever the
// logits are, those of hidden tokens being kHiddenLogit.
at::Tensor KlOfRows(const LogAndScores& own, const LogAndScores& other);

struct ReferenceLogits {
  LogAndScores p;  // [..., num_kv_heads, gqa_ratio, rows, tokens], where there are sinks, one
                   // column more
  at::Tensor logits = {};  // [..., tokens]; undefined where no logit errors are asked for
};

// What is asked besides the KL.
struct LogitParts {
  bool scores = false, kl_terms = false, logit_errors = false;
};

struct LogitComparison {
  at::Tensor kl;                    // [..., rows]
  at::Tensor scores = {};           // [..., rows, columns] of `logits`
  at::Tensor kl_terms = {};         // [..., rows, columns], never negative, of which kl is the sum
  at::Tensor logit_errors_sq = {};  // [..., rows]: sum of (logit^ - logit)^2
};

// `logits` [..., the reference's shape], and `sinks` [num_kv_heads, gqa_ratio, 1, 1] or undefined.
// On a GPU in one kernel, which the CUDA toolkit built.
LogitComparison CompareLogits(const ReferenceLogits& own, const at::Tensor& logits,
                              const at::Tensor& sinks, const LogitParts& parts);

}  // namespace oscar
