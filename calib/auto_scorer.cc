// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See auto_scorer.h.
#include "calib/auto_scorer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "calib/auto_cache.h"
#include "linalg/check.h"

namespace oscar {

struct AutoScorer::Sequence {
  at::Tensor keys, values;        // [tokens, num_kv_heads, dim]
  at::Tensor queries, positions;  // [rows, num_q_heads, d]; [rows] int64, host
  std::optional<RowComparison> comparison;
  at::Tensor quantized_scores;  // P of quantized tokens, [num_kv_heads, gqa_ratio * rows, tokens]
};

namespace {

// Indices of at most `count` of them, evenly spread.
std::vector<int64_t> Spread(const std::vector<int64_t>& from, int64_t count) {
  if (std::ssize(from) <= count) return from;
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < count; ++i)
    picked.push_back(from[static_cast<size_t>((i + 1) * std::ssize(from) / count - 1)]);
  return picked;
}

// Rows of a sequence that a score may use, by index into queries.rows.
std::vector<int64_t> UsableRows(const at::Tensor& positions /* host */, const CacheWindows& windows,
                                const AttentionSpec& spec) {
  const at::Tensor beyond = BeyondWindows(positions, windows, spec);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < positions.size(0); ++i) {
    if (beyond[i].item<bool>() && positions[i].item<int64_t>() < AutoScorer::kTokens)
      rows.push_back(i);
  }
  return rows;
}

std::vector<double> ToHost(const at::Tensor& t) {
  const at::Tensor host = t.to(at::kDouble).cpu().contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

// Sums over [num_kv_heads, gqa_ratio, rows] of the even rows and of the odd ones: [2,
// num_kv_heads].
at::Tensor ByTurns(const at::Tensor& x) {
  const auto sum = [&](int64_t first) {
    return x.slice(2, first, x.size(2), 2).to(at::kDouble).flatten(1).sum(1);
  };
  return at::stack({sum(0), sum(1)});
}

}  // namespace

double Mean(const std::vector<double>& heads) {
  OSCAR_CHECK(!heads.empty());
  return std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size());
}

AutoScorer::AutoScorer(const ObservedLayer& layer, const LayerSpec& spec,
                       std::vector<CacheWindows> windows, int64_t offset)
    : spec_(spec), windows_(std::move(windows)) {
  const AttentionSpec& attention = spec.attention;
  std::vector<at::Tensor> positions;
  std::vector<std::vector<int64_t>> usable;
  for (const HeldOutQueries& queries : layer.queries) positions.push_back(queries.rows.cpu());
  const auto collect = [&](const CacheWindows& beyond) {
    usable.clear();
    std::vector<int64_t> with_rows;
    for (size_t i = 0; i < positions.size(); ++i) {
      usable.push_back(UsableRows(positions[i], beyond, attention));
      if (usable.back().size() >= 2) with_rows.push_back(static_cast<int64_t>(i));
    }
    return with_rows;
  };
  std::vector<int64_t> with_rows = collect(windows_[0]);
  if (with_rows.empty()) {
    in_windows_ = true;
    windows_[0] = {};
    with_rows = collect({});
  }
  // Every other sequence stands further back; of a single one, every other pair of rows, so that
  // either place has rows that choose and rows that judge.
  const std::vector<int64_t> picked = Spread(with_rows, kSequences);
  const bool shifts = offset > 0 && attention.rope.rotary_dim > 0;
  for (size_t i = 0; i < picked.size(); ++i) {
    const auto at = static_cast<size_t>(picked[i]);
    const HeldOutQueries& queries = layer.queries[at];
    const std::vector<int64_t> rows = Spread(usable[at], kRows);
    if (!shifts || picked.size() > 1 || rows.size() < 4) {
      AddSequence(layer, queries, positions[at], rows, shifts && i % 2 == 1 ? offset : 0);
      continue;
    }
    std::vector<int64_t> places[2];
    for (size_t row = 0; row < rows.size(); ++row) places[row / 2 % 2].push_back(rows[row]);
    AddSequence(layer, queries, positions[at], places[0], 0);
    AddSequence(layer, queries, positions[at], places[1], offset);
  }
}

void AutoScorer::AddSequence(const ObservedLayer& layer, const HeldOutQueries& queries,
                             const at::Tensor& positions, const std::vector<int64_t>& rows,
                             int64_t offset) {
  const RopeSpec& rope = spec_.attention.rope;
  const at::Tensor index = at::tensor(rows, at::kLong);
  auto sequence = std::make_unique<Sequence>();
  sequence->positions = positions.index_select(0, index);
  sequence->queries =
      AtOffset(queries.queries.index_select(0, index.to(queries.queries.device())), rope, offset);
  const int64_t tokens = sequence->positions.max().item<int64_t>() + 1;
  const auto of_sequence = static_cast<size_t>(queries.sequence);
  sequence->keys = AtOffset(layer.keys[of_sequence].slice(0, 0, tokens), rope, offset);
  sequence->values = layer.values[of_sequence].slice(0, 0, tokens);
  sequence->comparison.emplace(spec_.attention, sequence->keys, sequence->values, at::kFloat,
                               RowDetail::kKl);
  sequence->comparison->SetRows({sequence->positions, sequence->queries});
  const at::Tensor exact =
      ExactMask(ExactInWindows(windows_[0]), sequence->positions, tokens, sequence->keys.device());
  sequence->quantized_scores = sequence->comparison->scores().masked_fill(exact, 0).flatten(1, 2);
  rows_ += std::ssize(rows);
  sequences_.push_back(std::move(sequence));
}

AutoScorer::~AutoScorer() = default;

int64_t AutoScorer::RowsBeyond(const CacheWindows& windows) const {
  int64_t rows = 0;
  for (const auto& sequence : sequences_)
    rows += BeyondWindows(sequence->positions, windows, spec_.attention).sum().item<int64_t>();
  return rows;
}

AutoScorer::Rotated AutoScorer::RotateKeys(const AutoSide& side) const {
  Rotated rotated;
  for (const auto& sequence : sequences_) {
    rotated.rows.push_back(AutoKeys(side, sequence->keys));
    rotated.sorted.push_back(SortedMagnitudes(rotated.rows.back()));
    rotated.queries.push_back(AutoQueries(side, sequence->queries, spec_.attention.num_kv_heads));
  }
  return rotated;
}

AutoScorer::Rotated AutoScorer::RotateValues(const AutoSide& side) const {
  Rotated rotated;
  rotated.side = &side;
  for (const auto& sequence : sequences_) {
    rotated.rows.push_back(AutoValues(side, sequence->values));
    rotated.sorted.push_back(SortedMagnitudes(rotated.rows.back()));
  }
  return rotated;
}

std::vector<RowErrors> AutoScorer::CompareKeys(size_t sequence, const Rotated& keys,
                                               const Quantizer& quantizer,
                                               std::span<const ExactSides> exact) const {
  const RowComparison& comparison = *sequences_[sequence]->comparison;
  const at::Tensor& rows = keys.rows[sequence];
  const at::Tensor stored = AutoQuantized(rows, keys.sorted[sequence], quantizer.bits,
                                          quantizer.clip, quantizer.quant_group_size);
  const RowComparison::Prepared prepared =
      comparison.Prepare({stored.permute({1, 0, 2}), {}, rows.permute({1, 0, 2}), {}});
  return comparison.Compare(prepared, keys.queries[sequence], exact);
}

HeadScores AutoScorer::ScoreKeys(const Rotated& keys, const Quantizer& quantizer) const {
  const ExactTokens in_windows = ExactInWindows(windows_[0]);
  const ExactSides exact[] = {{in_windows, {}}};
  at::Tensor sums;
  double even = 0, odd = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const at::Tensor kl = CompareKeys(i, keys, quantizer, exact)[0].kl;
    sums = sums.defined() ? sums.add(ByTurns(kl)) : ByTurns(kl);
    even += static_cast<double>((kl.size(2) + 1) / 2 * kl.size(1));
    odd += static_cast<double>(kl.size(2) / 2 * kl.size(1));
  }
  return {ToHost(sums[0].div(even)), ToHost(sums[1].div(odd))};
}

std::vector<double> AutoScorer::ScoreWindows(const Rotated& keys,
                                             const Quantizer& quantizer) const {
  std::vector<ExactSides> exact;
  for (const CacheWindows& windows : windows_) exact.push_back({ExactInWindows(windows), {}});
  std::vector<double> sums(windows_.size(), 0.0);
  double count = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const std::vector<RowErrors> errors = CompareKeys(i, keys, quantizer, exact);
    for (size_t w = 0; w < errors.size(); ++w)
      sums[w] += errors[w].kl.sum(at::kDouble).item<double>();
    count += static_cast<double>(errors[0].kl.numel());
  }
  for (double& sum : sums) sum /= count;
  return sums;
}

std::vector<double> AutoScorer::KeyOutputErrors(const Rotated& keys,
                                                const Quantizer& quantizer) const {
  const ExactTokens in_windows = ExactInWindows(windows_[0]);
  const ExactSides exact[] = {{in_windows, {}}};
  at::Tensor errors, energies;
  const auto add = [](at::Tensor& sum, const at::Tensor& rows) {
    const at::Tensor part = rows.to(at::kDouble).flatten(1).sum(1);
    sum = sum.defined() ? sum.add(part) : part;
  };
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& sequence = *sequences_[i];
    RowComparison comparison(spec_.attention, sequence.keys, sequence.values, at::kFloat,
                             RowDetail::kKlAndOutput);
    comparison.SetRows({sequence.positions, sequence.queries});
    const at::Tensor& rows = keys.rows[i];
    const at::Tensor stored = AutoQuantized(rows, keys.sorted[i], quantizer.bits, quantizer.clip,
                                            quantizer.quant_group_size);
    const RowComparison::Prepared prepared = comparison.Prepare(
        {stored.permute({1, 0, 2}), sequence.values, rows.permute({1, 0, 2}), {}});
    add(errors, comparison.Compare(prepared, keys.queries[i], exact)[0].output_error_sq);
    add(energies, comparison.output_sq());
  }
  return ToHost(errors.div(energies).sqrt());
}

HeadScores AutoScorer::ScoreValues(const Rotated& values, const Quantizer& quantizer) const {
  at::Tensor errors, energies;
  const auto add = [](at::Tensor& sum, const at::Tensor& part) {
    sum = sum.defined() ? sum.add(part) : part;
  };
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& sequence = *sequences_[i];
    const at::Tensor& scores = sequence.quantized_scores;
    const at::Tensor v = sequence.values.permute({1, 0, 2}).to(at::kFloat);
    const at::Tensor read =
        AutoValuesBack(*values.side, AutoQuantized(values.rows[i], values.sorted[i], quantizer.bits,
                                                   quantizer.clip, quantizer.quant_group_size));
    const int64_t rows = sequence.positions.size(0);
    const at::Tensor error = scores.bmm(read.sub(v)).square().sum(-1);
    add(errors, ByTurns(error.view({scores.size(0), -1, rows})));
    add(energies, ByTurns(sequence.comparison->output_sq()));
  }
  const at::Tensor relative = errors.div(energies).sqrt();
  return {ToHost(relative[0]), ToHost(relative[1])};
}

}  // namespace oscar
