// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/divergence.h"

#include <vector>

#include "export/evaluate/bootstrap.h"
#include "export/validate/piece_sums.h"
#include "linalg/base/check.h"

namespace oscar {

measures::ReasoningErrors ReasoningReport(std::span<const ScoredToken> tokens,
                                          const TokenErrors& arm, int64_t resamples,
                                          uint64_t seed) {
  OSCAR_CHECK(!tokens.empty());
  std::vector<RatioUnit> until;  // per sample: tokens before the first difference
  PieceSums kl, after;
  int64_t diverged = 0;
  bool on_path = true;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const ScoredToken& token = tokens[i];
    if (i == 0 || token.sequence != tokens[i - 1].sequence) {
      until.push_back({.sum = 0, .weight = 1});
      on_path = true;
    }
    // The bootstrap resamples continuations, so all tokens of one go into one piece.
    kl.Add(token.sequence, 0, token.length, arm.kl[i]);
    if (!on_path) {
      after.Add(token.sequence, 0, token.length, arm.kl[i]);
    } else if (arm.agrees[i] != 0) {
      until.back().sum += 1;
    } else {
      on_path = false;
      ++diverged;
    }
  }
  const auto samples = static_cast<double>(until.size());
  double sum = 0;
  for (const RatioUnit& unit : until) sum += unit.sum;
  measures::ReasoningErrors errors;
  errors.samples = std::ssize(until);
  errors.tokens = std::ssize(tokens);
  errors.diverged = static_cast<double>(diverged) / samples;
  errors.tokens_until = sum / samples;
  errors.token_kl = KlOf(kl, arm.kl, resamples, seed);
  errors.tokens_until_interval = BootstrapRatio(until, {.resamples = resamples, .seed = seed});
  if (after.count() == 0) return errors;
  errors.kl_after = after.mean();
  errors.kl_after_interval = after.Bootstrap(resamples, seed);
  return errors;
}

}  // namespace oscar
