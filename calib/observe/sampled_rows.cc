// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/sampled_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "calib/cache/exact_tokens.h"
#include "capture/model/run/attention.h"  // SoftCap, SinkLogits
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

struct Shape {
  int64_t sequences = 0, rows = 0, tokens = 0;
};

Shape PaddedShape(std::span<const SampledSequence> sequences) {
  Shape shape{.sequences = std::ssize(sequences)};
  for (const SampledSequence& s : sequences) {
    shape.rows = std::max(shape.rows, s.positions.size(0));
    shape.tokens = std::max(shape.tokens, s.keys.size(0));
  }
  return shape;
}

// Pads rows [tokens, heads, dim] to [sequences, heads, tokens, dim] float32.
at::Tensor PaddedHeads(std::span<const SampledSequence> sequences, const Shape& shape,
                       at::Tensor SampledSequence::*member) {
  const at::Tensor& first = sequences[0].*member;
  const at::Tensor padded = at::zeros({shape.sequences, first.size(1), shape.tokens, first.size(2)},
                                      first.options().dtype(at::kFloat));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const at::Tensor rows = (sequences[i].*member).permute({1, 0, 2});
    padded[static_cast<int64_t>(i)].narrow(1, 0, rows.size(1)).copy_(rows);
  }
  return padded;
}

// [sequences, num_kv_heads, gqa_ratio * rows, d] float32
at::Tensor PaddedQueries(std::span<const SampledSequence> sequences, const Shape& shape,
                         int64_t num_kv_heads, at::Tensor SampledSequence::*member) {
  const at::Tensor& first = sequences[0].*member;
  const int64_t ratio = first.size(1) / num_kv_heads, d = first.size(2);
  const at::Tensor padded = at::zeros({shape.sequences, num_kv_heads, ratio, shape.rows, d},
                                      first.options().dtype(at::kFloat));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const at::Tensor& queries = sequences[i].*member;
    padded[static_cast<int64_t>(i)]
        .narrow(2, 0, queries.size(0))
        .copy_(queries.view({-1, num_kv_heads, ratio, d}).permute({1, 2, 0, 3}));
  }
  return padded.flatten(2, 3);
}

// Returns the unscaled logits of the rope part, whose key is shared by all heads.
at::Tensor PositionProducts(std::span<const SampledSequence> sequences, const Shape& shape,
                            int64_t num_kv_heads) {
  const at::Tensor q = PaddedQueries(sequences, shape, num_kv_heads, &SampledSequence::q_pe);
  const at::Tensor k = at::zeros({shape.sequences, 1, shape.tokens, q.size(-1)}, q.options());
  for (size_t i = 0; i < sequences.size(); ++i) {
    const at::Tensor& rows = sequences[i].k_pe;
    k[static_cast<int64_t>(i)][0].narrow(0, 0, rows.size(0)).copy_(rows);
  }
  return at::matmul(q, k.transpose(-1, -2));
}

}  // namespace

SampledRows::SampledRows(const AttentionSpec& spec, std::span<const SampledSequence> sequences,
                         std::span<const CacheWindows> windows, const at::Tensor& output_map,
                         TextsOfRows texts)
    : scale_(spec.scale), softcap_(spec.softcap) {
  OSCAR_CHECK(!sequences.empty());
  const Shape shape = PaddedShape(sequences);
  keys_ = PaddedHeads(sequences, shape, &SampledSequence::keys);
  values_ = PaddedHeads(sequences, shape, &SampledSequence::values);
  queries_ = PaddedQueries(sequences, shape, spec.num_kv_heads, &SampledSequence::queries);
  if (output_map.defined()) {
    output_map_ = output_map.to(at::kFloat)
                      .transpose(1, 2)
                      .unflatten(0, {int64_t{1}, spec.num_kv_heads, int64_t{-1}});
  }
  const at::Device device = keys_.device();

  const at::Tensor positions = at::zeros({shape.sequences, shape.rows}, at::kLong);
  const int64_t columns = 2 + texts.total;
  const at::Tensor turns = at::zeros({shape.sequences, shape.rows, columns}, at::kDouble);
  num_rows_.assign(static_cast<size_t>(columns), 0);
  for (int64_t i = 0; i < shape.sequences; ++i) {
    const at::Tensor& of_sequence = sequences[static_cast<size_t>(i)].positions;
    positions[i].narrow(0, 0, of_sequence.size(0)).copy_(of_sequence);
    for (int64_t row = 0; row < of_sequence.size(0); ++row) {
      const auto count = [&](int64_t column) {
        turns.mutable_data_ptr<double>()[(i * shape.rows + row) * columns + column] = 1;
        num_rows_[static_cast<size_t>(column)] += 1;
      };
      count(row % 2);
      if (texts.total > 0 && row % 2 == 0) count(2 + texts.first + i);
    }
  }
  turns_ = turns.flatten(0, 1).to(device);
  const auto of_scores = [&](const at::Tensor& mask) {  // [sequences * rows, tokens]
    return mask.view({shape.sequences, 1, 1, shape.rows, shape.tokens});
  };
  const at::Tensor at_tokens = at::arange(shape.tokens, keys_.options().dtype(at::kLong));
  const at::Tensor age = positions.flatten().to(device).unsqueeze(1) - at_tokens;
  hidden_ = of_scores(spec.window ? age.lt(0).logical_or(age.ge(*spec.window)) : age.lt(0));
  for (const CacheWindows& w : windows) {
    const ExactTokens exact = ExactInWindows(w);
    exact_.push_back(exact.any()
                         ? of_scores(ExactMask(exact, positions.flatten(), shape.tokens, device))
                         : at::Tensor());
    kept_.push_back(exact.any() ? exact_.back().logical_or(hidden_) : hidden_);
  }
  if (const at::Tensor sinks = SinkLogits(spec, device); sinks.defined())
    sinks_ = sinks.view({spec.num_kv_heads, -1, 1, 1});
  if (sequences[0].q_pe.defined()) {
    position_logits_ = PositionProducts(sequences, shape, spec.num_kv_heads)
                           .mul_(scale_)
                           .unflatten(-2, {int64_t{-1}, shape.rows});
  }
  own_ = SoftmaxOf({Products(queries_, keys_), hidden_}, sinks_);
  p_ = own_.scores.narrow(-1, 0, shape.tokens);
  quantized_scores_ = (exact_[0].defined() ? p_.masked_fill(exact_[0], 0) : p_).flatten(2, 3);
  output_energies_ = OutputEnergies(at::matmul(p_.flatten(2, 3), values_).unsqueeze(0));
  output_sums_ = ByTurns(output_energies_);
}

// Logits [..., sequences, num_kv_heads, gqa_ratio, rows, tokens] as if no token were hidden.
at::Tensor SampledRows::Products(const at::Tensor& queries, const at::Tensor& keys) const {
  std::vector<int64_t> shape = queries.sizes().vec();
  shape[0] = keys.size(0);  // several caches may share their queries
  at::Tensor logits = BatchProduct(queries.mul(scale_).expand(shape), keys.transpose(-1, -2))
                          .unflatten(-2, {-1, hidden_.size(3)});
  if (position_logits_.defined()) logits.add_(position_logits_);
  SoftCap(softcap_, logits);
  return logits;
}

at::Tensor SampledRows::ExactLogits(const at::Tensor& queries, const at::Tensor& keys) const {
  const bool any = std::ranges::any_of(exact_, [](const at::Tensor& m) { return m.defined(); });
  if (!any) return {};
  at::Tensor logits = Products(queries, keys);
  Hide(logits, hidden_);
  return logits;
}

CacheLogits SampledRows::LogitsIn(size_t windows, const at::Tensor& products,
                                  const Keys& keys) const {
  return {products, kept_[windows], exact_[windows].defined() ? keys.exact_logits : at::Tensor()};
}

// |o|^2 after the output map, for outputs [caches, sequences, num_kv_heads, gqa_ratio * rows, dv].
at::Tensor SampledRows::OutputEnergies(const at::Tensor& outputs) const {
  at::Tensor of_rows = outputs.unflatten(-2, {-1, hidden_.size(3)});
  if (output_map_.defined()) of_rows = at::matmul(of_rows, output_map_);
  return of_rows.square().sum(-1);
}

at::Tensor SampledRows::OutputSums(const at::Tensor& outputs) const {
  return ByTurns(OutputEnergies(outputs));
}

// Returns the scores with windows[0] exact, without the column of sinks.
at::Tensor SampledRows::Scores(const Keys& keys) const {
  return SoftmaxOf(LogitsIn(0, Products(keys.queries, keys.stored), keys), sinks_)
      .scores.narrow(-1, 0, p_.size(-1));
}

// Sums [caches, sequences, num_kv_heads, gqa_ratio, rows] to [caches, num_kv_heads, 2 + texts].
at::Tensor SampledRows::ByTurns(const at::Tensor& of_rows) const {
  return of_rows.sum(3, /*keepdim=*/false, at::kDouble).transpose(1, 2).flatten(2).matmul(turns_);
}

std::vector<at::Tensor> SampledRows::KlSums(const Keys& keys, std::span<const size_t> which) const {
  const at::Tensor products = Products(keys.queries, keys.stored);
  std::vector<at::Tensor> sums;
  for (const size_t w : which)
    sums.push_back(ByTurns(CompareLogits({own_}, LogitsIn(w, products, keys), sinks_, {}).kl));
  return sums;
}

at::Tensor SampledRows::KeyErrorSums(const Keys& keys) const {
  return OutputSums(at::matmul(Scores(keys).sub(p_).flatten(-3, -2), values_));
}

at::Tensor SampledRows::ValueErrorSums(const at::Tensor& read) const {
  return OutputSums(at::matmul(quantized_scores_, read.sub(values_)));
}

at::Tensor SampledRows::RelativeErrorSums(const Keys& keys, const at::Tensor& read,
                                          const at::Tensor& exact_read) const {
  const at::Tensor scores = Scores(keys);
  const auto heads = [](const at::Tensor& x) { return x.flatten(-3, -2); };
  at::Tensor outputs = at::matmul(heads(scores), read);
  if (exact_[0].defined()) {
    const at::Tensor in_windows = scores.masked_fill(exact_[0].logical_not(), 0);
    outputs.add_(at::matmul(heads(in_windows), exact_read.sub(read)));
  }
  const at::Tensor errors = OutputEnergies(outputs.sub_(at::matmul(heads(p_), values_)));
  return ByTurns(errors.div(output_energies_).sqrt_().masked_fill_(output_energies_.eq(0), 0));
}

}  // namespace oscar
