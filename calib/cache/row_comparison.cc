// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/row_comparison.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "capture/model/run/attention.h"  // SoftCap, SinkLogits
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Multiplies scores [num_kv_heads, gqa_ratio, rows, tokens] by values [num_kv_heads, tokens, dim].
at::Tensor Weighted(const at::Tensor& scores, const at::Tensor& values) {
  return BatchProduct(scores.flatten(1, 2), values)
      .view({scores.size(0), scores.size(1), scores.size(2), values.size(2)});
}

}  // namespace

at::Tensor BeyondWindows(const at::Tensor& positions, const CacheWindows& windows,
                         const AttentionSpec& spec) {
  if (spec.window && windows.recent >= *spec.window) return at::zeros_like(positions, at::kBool);
  return positions.ge(windows.sink + windows.recent);
}

int64_t RowsPerSlice(const AttentionSpec& spec, int64_t tokens, int64_t element_bytes,
                     int64_t bytes) {
  return std::max<int64_t>(1, bytes / (element_bytes * spec.num_q_heads * tokens));
}

RowComparison::RowComparison(const AttentionSpec& spec, const at::Tensor& keys,
                             const at::Tensor& values, at::ScalarType dtype, RowDetail detail)
    : spec_(spec), dtype_(dtype), detail_(detail), k_(Heads(keys)), v_(Heads(values)) {
  OSCAR_CHECK(dtype == at::kDouble || dtype == at::kFloat);
  if (const at::Tensor sinks = SinkLogits(spec, keys.device()); sinks.defined())
    sinks_ = sinks.to(dtype).view({spec.num_kv_heads, -1, 1, 1});
}

at::Tensor RowComparison::Heads(const at::Tensor& rows) const {
  return rows.permute({1, 0, 2}).to(dtype_).contiguous();
}

// [rows, num_q_heads, d] -> [num_kv_heads, gqa_ratio * rows, d]
at::Tensor RowComparison::Queries(const at::Tensor& queries) const {
  return queries.to(dtype_)
      .view({queries.size(0), spec_.num_kv_heads, -1, queries.size(2)})
      .permute({1, 2, 0, 3})
      .reshape({spec_.num_kv_heads, -1, queries.size(2)});
}

// Logits [num_kv_heads, gqa_ratio, rows, seen] as if no token were hidden.
at::Tensor RowComparison::Products(const at::Tensor& queries, const at::Tensor& keys) const {
  at::Tensor logits = BatchProduct(queries.mul(spec_.scale), Seen(keys).transpose(1, 2))
                          .view({keys.size(0), -1, hidden_.size(0), hidden_.size(1)});
  if (position_logits_.defined()) logits.add_(position_logits_);
  SoftCap(spec_.softcap, logits);
  return logits;
}

at::Tensor RowComparison::Logits(const at::Tensor& queries, const at::Tensor& keys) const {
  at::Tensor logits = Products(queries, keys);
  Hide(logits, hidden_);
  return logits;
}

// Returns |o|^2 of outputs [num_kv_heads, gqa_ratio, ..., dv], after the output map.
at::Tensor RowComparison::OutputEnergy(const at::Tensor& outputs) const {
  if (!output_map_.defined()) return outputs.square().sum(-1);
  const at::IntArrayRef shape = outputs.sizes();
  return outputs.reshape({shape[0] * shape[1], -1, shape.back()})
      .bmm(output_map_.transpose(1, 2))
      .square_()
      .sum(-1)
      .view(shape.slice(0, shape.size() - 1));
}

void RowComparison::SetRows(const QueryRows& rows) {
  positions_ = rows.positions.cpu();
  num_seen_ = std::min(k_.size(1), positions_.max().item<int64_t>() + 1);
  const at::Tensor positions = positions_.to(k_.device(), /*non_blocking=*/true);
  const at::Tensor age = positions.unsqueeze(1) - at::arange(num_seen_, positions.options());
  at::Tensor visible = age.ge(0);
  if (spec_.window) visible = visible.logical_and(age.lt(*spec_.window));
  hidden_ = visible.logical_not();
  reference_.visible_keys = visible.sum(-1);
  queries_ = Queries(rows.queries);
  OSCAR_CHECK_EQ(k_pe_.defined(), rows.q_pe.defined());
  if (k_pe_.defined()) {
    position_logits_ = at::matmul(Queries(rows.q_pe), k_pe_.narrow(0, 0, num_seen_).t())
                           .mul_(spec_.scale)
                           .view({spec_.num_kv_heads, -1, hidden_.size(0), num_seen_});
  }
  own_.logits = Logits(queries_, k_);
  own_.p = SoftmaxOf({own_.logits}, sinks_);
  output_ = Weighted(OfTokens(own_.p.scores), Seen(v_));
  reference_.output_sq = OutputEnergy(output_);
  if (detail_ == RowDetail::kAll)
    reference_.logit_sq = own_.logits.masked_fill(hidden_, 0).square_().sum(-1);
}

RowComparison::Prepared RowComparison::Prepare(const StoredCache& stored) const {
  Prepared prepared;
  if (stored.k_stored.defined()) prepared.k_stored = Heads(stored.k_stored);
  if (stored.k.defined()) prepared.k = Heads(stored.k);
  if (!stored.v_stored.defined()) return prepared;
  const at::Tensor v_stored = Heads(stored.v_stored);
  prepared.values = detail_ == RowDetail::kAll ? at::cat({v_stored, v_}, -1) : v_stored;
  prepared.exact_minus_stored = (stored.v.defined() ? Heads(stored.v) : v_).sub(v_stored);
  return prepared;
}

RowComparison::Prepared RowComparison::WithValuesOf(std::span<const Prepared> caches) {
  std::vector<at::Tensor> values, exact_minus_stored;
  for (const Prepared& cache : caches) {
    values.push_back(cache.values);
    exact_minus_stored.push_back(cache.exact_minus_stored);
  }
  return {caches[0].k_stored, caches[0].k, at::cat(values, -1), at::cat(exact_minus_stored, -1)};
}

RowComparison::ExactMasks RowComparison::MasksOf(const ExactSides& exact) const {
  const auto mask = [&](const ExactTokens& tokens) {
    return tokens.any() ? ExactMask(tokens, positions_, num_seen_, k_.device()) : at::Tensor();
  };
  ExactMasks masks{mask(exact.k), mask(exact.v)};
  if (masks.k.defined()) masks.k_or_hidden = masks.k.logical_or(hidden_);
  return masks;
}

std::vector<RowErrors> RowComparison::Compare(const Prepared& stored, const at::Tensor& own_queries,
                                              std::span<const ExactSides> exact,
                                              std::optional<size_t> apart) const {
  std::vector<ExactMasks> masks;
  for (const ExactSides& sides : exact) masks.push_back(MasksOf(sides));
  return Compare(stored, own_queries, masks, apart);
}

std::vector<RowErrors> RowComparison::Compare(const Prepared& stored, const at::Tensor& own_queries,
                                              std::span<const ExactMasks> exact,
                                              std::optional<size_t> apart) const {
  const at::Tensor queries = own_queries.defined() ? Queries(own_queries) : queries_;
  const at::Tensor logits = Products(queries, stored.k_stored);
  at::Tensor exact_logits = own_.logits;
  const auto exact_keys = [](const ExactMasks& masks) { return masks.k.defined(); };
  if ((own_queries.defined() || stored.k.defined()) && std::ranges::any_of(exact, exact_keys))
    exact_logits = Logits(queries, stored.k.defined() ? stored.k : k_);
  std::vector<RowErrors> errors;
  for (const ExactMasks& masks : exact) {
    const CacheLogits read = masks.k.defined()
                                 ? CacheLogits{logits, masks.k_or_hidden, exact_logits}
                                 : CacheLogits{logits, hidden_};
    errors.push_back(Errors(read, masks.v, stored, apart == errors.size()));
  }
  return errors;
}

DistanceErrors RowComparison::ByDistance(const at::Tensor& kl_of_tokens) const {
  const int64_t tokens = num_seen_;
  const at::Tensor positions = positions_.to(k_.device());
  // Column d holds the index of the key at distance d. Distances that reach before the first token
  // wrap around to later keys, which the row does not see and which add nothing.
  const at::Tensor keys =
      positions.unsqueeze(1).sub(at::arange(tokens, positions.options())).remainder_(tokens);
  std::vector<int64_t> shape = kl_of_tokens.sizes().vec();
  shape.back() = kDistanceBuckets + 1;
  const auto buckets = [&](const at::Tensor& of_keys) {
    const at::Tensor sums = at::zeros(shape, of_keys.options().dtype(at::kDouble));
    const at::Tensor own = OfTokens(of_keys);
    const at::Tensor by_distance = own.gather(-1, keys.expand_as(own));
    for (int bucket = 0; bucket < kDistanceBuckets && DistanceFrom(bucket) < tokens; ++bucket) {
      const int64_t end = std::min(tokens, DistanceFrom(bucket + 1));
      sums.select(-1, bucket)
          .copy_(by_distance.slice(-1, DistanceFrom(bucket), end).sum(-1, false, at::kDouble));
    }
    if (sinks_.defined()) sums.select(-1, kDistanceBuckets).copy_(of_keys.select(-1, -1));
    return sums;
  };
  return {buckets(own_.p.scores), buckets(kl_of_tokens)};
}

RowErrors RowComparison::Errors(const CacheLogits& logits, const at::Tensor& exact_values,
                                const Prepared& stored, bool apart) const {
  const LogitComparison compared = CompareLogits(
      own_, logits, sinks_,
      {.scores = true, .kl_terms = apart, .logit_errors = detail_ == RowDetail::kAll});
  RowErrors errors;
  errors.kl = compared.kl;
  errors.logit_error_sq = compared.logit_errors_sq;
  if (apart) errors.by_distance = ByDistance(compared.kl_terms);

  const at::Tensor scores = OfTokens(compared.scores);
  const int64_t dim = v_.size(2), all = stored.exact_minus_stored.size(2);
  const at::Tensor sums = Weighted(scores, Seen(stored.values));  // one product for both parts
  at::Tensor output = sums.narrow(-1, 0, all);
  if (exact_values.defined()) {
    const at::Tensor weights = scores.mul(exact_values.to(dtype_));
    output = output.add(Weighted(weights, Seen(stored.exact_minus_stored)));
  }
  const at::Tensor difference =
      all == dim ? output.sub(output_) : output.unflatten(-1, {-1, dim}).sub(output_.unsqueeze(3));
  errors.output_error_sq = OutputEnergy(difference);
  if (detail_ == RowDetail::kKlAndOutput) return errors;
  const at::Tensor with_true_values = sums.narrow(-1, dim, dim);
  errors.k_term_sq = OutputEnergy(with_true_values.sub(output_));
  errors.v_term_sq = OutputEnergy(output.sub(with_true_values));
  return errors;
}

}  // namespace oscar
