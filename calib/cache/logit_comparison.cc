// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/logit_comparison.h"

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "calib/cache/cache_kernels.h"

namespace oscar {
namespace {

// Each token's contribution to the KL, p log(p / p^) - p + p^ >= 0, is the sum of both members.
struct KlTerms {
  at::Tensor near, far;
};

KlTerms TermsOfKl(const LogAndScores& own, const LogAndScores& other) {
  // e^x would overflow for a very inaccurate cache, so x is clamped to kFar. Where x is larger,
  // `far` adds p^ - p e^kFar, because p e^x = p^. The neglected term, p (x - kFar), is less than p^
  // e^-kFar.
  constexpr double kFar = 40;
  at::Tensor x = other.log.sub(own.log).clamp_max_(kFar);
  const at::Tensor near = x.expm1().sub_(x).mul_(own.scores);
  at::sub_out(x, other.scores, own.scores, std::exp(kFar));
  return {near, x.clamp_min_(0)};
}

at::Tensor SumOf(const KlTerms& terms) { return terms.near.sum(-1).add(terms.far.sum(-1)); }

}  // namespace

at::Tensor WithSinks(const at::Tensor& of_tokens, const at::Tensor& sinks) {
  if (!sinks.defined()) return of_tokens;
  std::vector<int64_t> column = of_tokens.sizes().vec();
  column.back() = 1;
  return at::cat({of_tokens, sinks.to(of_tokens.scalar_type()).expand(column)}, -1);
}

at::Tensor KlOfRows(const LogAndScores& own, const LogAndScores& other) {
  return SumOf(TermsOfKl(own, other));
}

void Hide(at::Tensor& logits, const at::Tensor& hidden) {
  logits.add_(hidden.to(logits.scalar_type()).mul_(kHiddenLogit));
}

at::Tensor CacheLogits::Read() const {
  if (!kept.defined()) return logits;
  return exact.defined() ? at::where(kept, exact, logits) : logits.masked_fill(kept, kHiddenLogit);
}

LogAndScores SoftmaxOf(const CacheLogits& cache, const at::Tensor& sinks) {
  if (std::optional<LogAndScores> softmax = SoftmaxInOneKernel(cache, sinks))
    return *std::move(softmax);
  LogAndScores softmax{WithSinks(cache.Read(), sinks).log_softmax(-1), {}};
  softmax.scores = softmax.log.exp();
  return softmax;
}

LogitComparison CompareLogits(const ReferenceLogits& own, const CacheLogits& cache,
                              const at::Tensor& sinks, const LogitParts& parts) {
  if (std::optional<LogitComparison> compared = CompareLogitsInOneKernel(own, cache, sinks, parts))
    return *std::move(compared);
  const at::Tensor logits = cache.Read();
  LogAndScores other = {WithSinks(logits, sinks).log_softmax(-1), {}};
  other.scores = other.log.exp();
  const KlTerms terms = TermsOfKl(own.p, other);
  LogitComparison result{.kl = SumOf(terms)};
  if (parts.scores) result.scores = std::move(other.scores);
  if (parts.kl_terms) result.kl_terms = terms.near.add(terms.far);
  if (parts.logit_errors) result.logit_errors_sq = logits.sub(own.logits).square_().sum(-1);
  return result;
}

}  // namespace oscar
