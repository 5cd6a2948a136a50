// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/refinement_loss.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/logit_comparison.h"  // WithSinks
#include "capture/model/run/attention.h"   // SinkLogits

namespace oscar {
namespace {

// Drops the column of the sinks.
at::Tensor OfTokens(const RefinementSample& sample, const at::Tensor& scores) {
  return scores.narrow(-1, 0, sample.values.size(1));
}

constexpr double kHidden = -1e30;  // logit of a hidden token; finite, so that 0 * log p is 0

at::Tensor PerHead(const at::Tensor& rows) {  // [tokens, heads, dim] -> [heads, tokens, dim]
  return rows.to(at::kFloat).permute({1, 0, 2}).contiguous();
}

// Returns the rows as read back from the cache.
at::Tensor Stored(const at::Tensor& rows, const HeadTransforms& transforms,
                  const AffineQuantizer& quantizer) {
  const at::Tensor back =
      transforms.inverse.defined() ? transforms.inverse : transforms.transform.transpose(1, 2);
  const at::Tensor turned = at::matmul(rows, transforms.transform);
  return at::matmul(QuantizedRows(turned, quantizer, {}, /*straight_through=*/true), back);
}

// [num_kv_heads, ratio, queries, dv]
at::Tensor WeightedSum(const at::Tensor& weights, const at::Tensor& values) {
  return at::matmul(weights, values.unsqueeze(1));
}

}  // namespace

RefinementLoss::RefinementLoss(const RefinementProblem& problem, const RefinementOptions& options,
                               at::Device device)
    : spec_(problem.attention), options_(options) {
  if (const at::Tensor sinks = SinkLogits(spec_, device); sinks.defined())
    sinks_ = sinks.view({spec_.num_kv_heads, -1, 1, 1});
  if (problem.key_mean.defined()) key_mean_ = problem.key_mean.to(device, at::kFloat).unsqueeze(1);
  if (!problem.output_projection.defined()) return;
  const at::Tensor w = problem.output_projection.to(device, at::kFloat)
                           .reshape({-1, spec_.num_q_heads, spec_.v_head_dim})
                           .permute({1, 0, 2});  // [num_q_heads, hidden, dv]
  metric_ = at::matmul(w.transpose(1, 2), w)
                .div_(static_cast<double>(w.size(1)))
                .view({spec_.num_kv_heads, -1, spec_.v_head_dim, spec_.v_head_dim});
}

RefinementSample RefinementLoss::PrepareKeys(const RefinementSequence& rows) const {
  const int64_t tokens = rows.k.size(0);
  const int64_t count = std::min(tokens, options_.queries);
  RefinementSample sample;
  sample.queries = rows.q.slice(0, tokens - count)
                       .to(at::kFloat)
                       .reshape({count, spec_.num_kv_heads, spec_.gqa_ratio(), spec_.head_dim})
                       .permute({1, 2, 0, 3})
                       .flatten(1, 2)
                       .contiguous();
  sample.keys = PerHead(rows.k);
  sample.centered = key_mean_.defined() ? sample.keys - key_mean_ : sample.keys;
  sample.values = PerHead(rows.v);
  const auto int64 = rows.k.options().dtype(at::kLong);
  const at::Tensor key = at::arange(tokens, int64).unsqueeze(0);
  const at::Tensor age = at::arange(tokens - count, tokens, int64).unsqueeze(1) - key;
  sample.visible = age.ge(0);
  if (spec_.window) sample.visible = sample.visible.logical_and(age.lt(*spec_.window));
  sample.exact = key.lt(options_.windows.sink).logical_or(age.lt(options_.windows.recent));
  if (rows.counted.defined()) {
    const at::Tensor counted = rows.counted.slice(0, tokens - count).to(at::kFloat).unsqueeze(1);
    sample.weights = counted.div(counted.mean().clamp_min(1e-9));
  }
  sample.logits = Logits(sample, sample.keys);
  sample.log_p = LogScores(sample.logits);
  sample.p = sample.log_p.exp();
  return sample;
}

RefinementSample RefinementLoss::PrepareValues(const RefinementSequence& rows,
                                               const HeadTransforms& keys,
                                               int64_t most_tokens) const {
  RefinementSample sample = PrepareKeys(rows);
  sample.probabilities =
      OfTokens(sample, StoredLogProbabilities(sample, keys).exp()).masked_fill(sample.exact, 0);
  if (sample.weights.defined())  // outputs are linear in the weights, and the loss squares outputs
    sample.probabilities = sample.probabilities.mul(sample.weights.sqrt());
  sample.logits = sample.log_p = sample.p = at::Tensor();
  if (most_tokens == 0 || most_tokens >= sample.values.size(1)) return sample;
  const at::Tensor weights = sample.probabilities.square().sum({1, 2});  // [num_kv_heads, tokens]
  const at::Tensor kept = std::get<1>(weights.topk(most_tokens, -1));
  sample.values =
      sample.values.gather(1, kept.unsqueeze(-1).expand({-1, -1, sample.values.size(2)}));
  const at::Tensor& p = sample.probabilities;
  sample.probabilities =
      p.gather(3, kept.unsqueeze(1).unsqueeze(1).expand({-1, p.size(1), p.size(2), -1}));
  return sample;
}

at::Tensor RefinementLoss::Keys(const RefinementSample& sample,
                                const HeadTransforms& transforms) const {
  const at::Tensor log_p = StoredLogProbabilities(sample, transforms);
  at::Tensor kl = sample.p.mul(sample.log_p - log_p).sum(-1);
  at::Tensor shift = WeightedSum(OfTokens(sample, log_p.exp() - sample.p), sample.values);
  if (sample.weights.defined()) {
    kl = kl.mul(sample.weights.squeeze(1));
    shift = shift.mul(sample.weights.sqrt());
  }
  return kl.mean({1, 2}) + OutputSquare(shift).mul(options_.shift_weight);
}

at::Tensor RefinementLoss::Values(const RefinementSample& sample,
                                  const HeadTransforms& transforms) const {
  const at::Tensor error = Stored(sample.values, transforms, options_.v) - sample.values;
  return OutputSquare(WeightedSum(sample.probabilities, error));
}

// [num_kv_heads, ratio, queries, tokens]
at::Tensor RefinementLoss::Logits(const RefinementSample& sample, const at::Tensor& keys) const {
  at::Tensor logits = at::matmul(sample.queries, keys.transpose(1, 2)).mul(spec_.scale);
  if (spec_.softcap != 0) logits = logits.div(spec_.softcap).tanh().mul(spec_.softcap);
  return logits.view({spec_.num_kv_heads, spec_.gqa_ratio(), -1, keys.size(1)})
      .masked_fill(sample.visible.logical_not(), kHidden);
}

at::Tensor RefinementLoss::LogScores(const at::Tensor& logits) const {
  return at::log_softmax(WithSinks(logits, sinks_), -1);
}

at::Tensor RefinementLoss::StoredLogProbabilities(const RefinementSample& sample,
                                                  const HeadTransforms& transforms) const {
  at::Tensor keys = Stored(sample.centered, transforms, options_.k);
  if (key_mean_.defined()) keys = keys + key_mean_;
  const at::Tensor logits = at::where(sample.exact, sample.logits, Logits(sample, keys));
  return LogScores(logits);
}

// Returns the mean square of outputs x after W_O: x W_O^T W_O x^T / hidden.  // [num_kv_heads]
at::Tensor RefinementLoss::OutputSquare(const at::Tensor& x) const {
  if (!metric_.defined()) return x.square().mean({1, 2, 3});
  return at::matmul(x, metric_).mul(x).sum(-1).mean({1, 2});
}

}  // namespace oscar
