// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The effect of a quantized cache on attention, in float64: KL(S || S^) in nats of each query's
// softmax row, and the error of the output. Trap: this is attention-KL, over keys; the KL of a
// model's output distribution is another quantity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "linalg/cache_windows.h"
#include "tests/reference/attention_rule.h"

namespace oscar {

// One query head over one sequence; all tensors are row-major. k_hat and v_hat are read from the
// cache and rotated back.
struct AttentionOperands {
  int64_t tokens = 0;
  int64_t head_dim = 0;
  int64_t v_head_dim = 0;
  std::span<const double> q, k, k_hat;  // [tokens, head_dim]
  std::span<const double> v, v_hat;     // [tokens, v_head_dim]
};

// Sums over query rows. Merge() adds other heads, sequences or layers; means are then over all
// rows.
struct AttentionError {
  int64_t rows = 0;         // query rows
  int64_t rows_beyond = 0;  // rows i >= sink + recent, the only ones that see quantized keys
  double kl_sum = 0, kl_sum_beyond = 0, kl_max = 0;         // nats
  double output_error_sq = 0, output_sq = 0;                // ||P^ V^ - P V||_F^2, ||P V||_F^2
  double output_error_sq_beyond = 0, output_sq_beyond = 0;  // the same over rows beyond
  int64_t pairs = 0;                                        // visible (query, key) pairs
  double logit_error_sq = 0, logit_sq = 0;                  // scaled logits, summed over pairs

  void Merge(const AttentionError& other);

  double kl_mean() const;                                 // needs rows > 0
  std::optional<double> kl_mean_beyond() const;           // nothing if rows_beyond = 0
  double output_rel_error() const;                        // relative Frobenius norm
  std::optional<double> output_rel_error_beyond() const;  // nothing if rows_beyond = 0
  double logit_mse() const;        // mean over pairs of (scale <q, k - k^>)^2; needs pairs > 0
  double logit_rel_error() const;  // square root of logit_error_sq / logit_sq
};

// Computes KL as the sum of p (e^x - 1 - x), x = log p^ - log p, which is never negative and does
// not cancel. If the windows contain every visible key, all errors are exactly 0. Throws
// NumericalError, naming `what`, if an operand holds NaN or Inf.
AttentionError CompareAttention(const AttentionOperands& operands, const AttentionRule& rule,
                                const CacheWindows& windows, std::string_view what);

// Returns KL(p || p_hat) in nats. Both rows hold natural logarithms of probabilities that sum to 1,
// and have equal size.
double KlDivergence(std::span<const double> log_p, std::span<const double> log_p_hat);

}  // namespace oscar
