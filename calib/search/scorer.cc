// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because all scores share their rows, batches and sums.
#include "calib/search/scorer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/row_comparison.h"  // BeyondWindows
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {
// Returns at most `count` of the indices, spread evenly.
std::vector<int64_t> Spread(const std::vector<int64_t>& from, int64_t count) {
  if (std::ssize(from) <= count) return from;
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < count; ++i)
    picked.push_back(from[static_cast<size_t>((i + 1) * std::ssize(from) / count - 1)]);
  return picked;
}

// Returns the first position of a sequence that is used: 0, or the start of its last kTokens tokens
// if all query rows come after the first kTokens tokens.
int64_t BeginOf(const at::Tensor& positions /* host, ascending */) {
  if (positions.numel() == 0 || positions[0].item<int64_t>() < AutoScorer::kTokens) return 0;
  return positions[-1].item<int64_t>() + 1 - AutoScorer::kTokens;
}

// Returns the rows of a sequence that can be scored, as indices into queries.rows.
std::vector<int64_t> UsableRows(const at::Tensor& positions /* host */, const CacheWindows& windows,
                                const AttentionSpec& spec) {
  const at::Tensor usable = BeyondWindows(positions, windows, spec)
                                .logical_and(positions.lt(AutoScorer::kTokens))
                                .nonzero()
                                .contiguous();
  return {usable.const_data_ptr<int64_t>(), usable.const_data_ptr<int64_t>() + usable.numel()};
}

// Selects the trials' sides from [sides, ...]: [trials, ...], or [1, ...] if all are the same.
at::Tensor OfSides(const at::Tensor& sides, AutoScorer::Trials trials) {
  if (!sides.defined()) return sides;
  const auto side = [&](const AutoScorer::Trial& trial) {
    return sides.select(0, static_cast<int64_t>(trial.side));
  };
  size_t in_order = 0;
  while (in_order < trials.size() && trials[in_order].side == in_order) ++in_order;
  if (std::ssize(trials) == sides.size(0) && in_order == trials.size()) return sides;
  const auto same = [&](const auto& trial) { return trial.side == trials[0].side; };
  if (std::ranges::all_of(trials, same)) return side(trials[0]).unsqueeze(0);
  std::vector<at::Tensor> several;
  for (const AutoScorer::Trial& trial : trials) several.push_back(side(trial));
  return at::stack(several);
}

SidesOnDevice OfSides(const SidesOnDevice& sides, AutoScorer::Trials trials) {
  return {OfSides(sides.rotation, trials), OfSides(sides.query_rotation, trials),
          OfSides(sides.pair_scale, trials), OfSides(sides.mean, trials),
          OfSides(sides.feedback, trials)};
}

// `factors`: SidesOnDevice::feedback of the trials.
at::Tensor Quantized(const at::Tensor& rows, const at::Tensor& sorted, const at::Tensor& factors,
                     AutoScorer::Trials trials, AutoScorer::Quantizer quantizer) {
  std::vector<at::Tensor> thresholds;
  for (const AutoScorer::Trial& trial : trials) {
    thresholds.push_back(
        HeadThresholds(sorted.select(0, static_cast<int64_t>(trial.side)), trial.clip));
  }
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = std::ssize(trials);
  if (quantizer.quant_group_size == 0) quantizer.quant_group_size = rows.size(-1);
  const at::Tensor all = rows.expand(shape), clamps = at::stack(thresholds);
  if (!factors.defined()) return AffineRoundTrip(all, clamps, quantizer);
  if (factors.size(0) == 1)
    return AffineRoundTripWithFeedback(all, clamps, quantizer, factors[0][0]);
  std::vector<at::Tensor> read;
  for (int64_t i = 0; i < shape[0]; ++i)
    read.push_back(AffineRoundTripWithFeedback(all[i], clamps[i], quantizer, factors[i][0]));
  return at::stack(read);
}

// Adds the sums over another batch's rows.
void Add(std::vector<at::Tensor>& sums, const std::vector<at::Tensor>& more) {
  if (sums.empty()) sums.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i)
    sums[i] = sums[i].defined() ? sums[i].add(more[i]) : more[i];
}

// [trials, num_kv_heads, 2 + texts]
std::vector<HeadScores> ToScores(const at::Tensor& scores, const LayerSpec& spec) {
  const at::Tensor host = scores.cpu().contiguous();
  if (!host.isfinite().all().item<bool>()) {
    throw NumericalError(fmt::format("layer {}: a score of the automatic choice is not finite, "
                                     "because logits or outputs overflow float32",
                                     spec.layer_id),
                         Remedy::kWithoutChoice);
  }
  const double* from = host.const_data_ptr<double>();
  std::vector<HeadScores> of_trials(static_cast<size_t>(host.size(0)));
  const int64_t heads = host.size(1);
  for (HeadScores& of_trial : of_trials) {
    of_trial.of_texts.assign(static_cast<size_t>(host.size(2) - 2), 0);
    for (int64_t head = 0; head < heads; ++head) {
      of_trial.score.push_back(*from++);
      of_trial.check.push_back(*from++);
      for (double& of_text : of_trial.of_texts) of_text += *from++ / static_cast<double>(heads);
    }
  }
  return of_trials;
}

}  // namespace

double Mean(const std::vector<double>& heads) {
  OSCAR_CHECK(!heads.empty());
  return std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size());
}

int64_t AutoScorer::ValuesAtOnce(at::DeviceType device) {
  return device == at::kCPU ? 0 : int64_t{8} << 20;
}

AutoScorer::AutoScorer(const ObservedLayer& layer, const LayerSpec& spec,
                       std::vector<CacheWindows> windows, int64_t offset, int64_t values_at_once)
    : spec_(spec), windows_(std::move(windows)), values_at_once_(values_at_once) {
  const AttentionSpec& attention = spec.attention;
  std::vector<at::Tensor> positions;  // relative to where the sequence is taken to begin
  std::vector<int64_t> begins;
  std::vector<std::vector<int64_t>> usable;
  for (const HeldOutQueries& queries : layer.queries) {
    const at::Tensor rows = queries.rows.cpu();
    begins.push_back(BeginOf(rows));
    positions.push_back(rows.sub(begins.back()));
  }
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
  if (with_rows.empty()) {
    throw InputError(fmt::format("layer {}: no document has two held-out rows within its first or "
                                 "last {} tokens, so no choice can be made",
                                 spec.layer_id, kTokens),
                     Remedy::kHoldOutMore);
  }
  // Every other sequence is shifted by `offset`. If there is only one sequence, every other pair of
  // its rows is shifted, so that both offsets have choosing and judging rows.
  const std::vector<int64_t> picked = Spread(with_rows, kSequences);
  std::vector<SampledSequence> sequences;
  const bool shifts = offset > 0 && attention.rope.rotary_dim > 0;
  for (size_t i = 0; i < picked.size(); ++i) {
    const auto at = static_cast<size_t>(picked[i]);
    const HeldOutQueries& queries = layer.queries[at];
    const std::vector<int64_t> rows = Spread(usable[at], RowsOf(attention));
    if (!shifts || picked.size() > 1 || rows.size() < 4) {
      AddSequence(layer, queries, begins[at], positions[at], rows,
                  shifts && i % 2 == 1 ? offset : 0, sequences);
      continue;
    }
    std::vector<int64_t> places[2];
    for (size_t row = 0; row < rows.size(); ++row) places[row / 2 % 2].push_back(rows[row]);
    AddSequence(layer, queries, begins[at], positions[at], places[0], 0, sequences);
    AddSequence(layer, queries, begins[at], positions[at], places[1], offset, sequences);
  }
  MakeBatches(sequences, layer.w_uv);
}

void AutoScorer::AddSequence(const ObservedLayer& layer, const HeldOutQueries& queries,
                             int64_t begin, const at::Tensor& positions,
                             const std::vector<int64_t>& rows, int64_t offset,
                             std::vector<SampledSequence>& sequences) {
  const RopeSpec& rope = spec_.attention.rope;
  const at::Tensor index = at::tensor(rows, at::kLong);
  SampledSequence sequence;
  sequence.positions = positions.index_select(0, index);
  sequence.queries =
      AtOffset(queries.queries.index_select(0, index.to(queries.queries.device())), rope, offset);
  const int64_t tokens = sequence.positions.max().item<int64_t>() + 1;
  const auto of_sequence = static_cast<size_t>(queries.sequence);
  // The first tokens, which attract much attention, are kept if the sequence begins later.
  const int64_t sinks = spec_.attention.window ? 0 : std::min(windows_[0].sink, tokens);
  const auto read = [&](const at::Tensor& of_tokens) {
    if (begin == 0) return of_tokens.slice(0, 0, tokens);
    return at::cat(
        {of_tokens.slice(0, 0, sinks), of_tokens.slice(0, begin + sinks, begin + tokens)});
  };
  sequence.keys = AtOffset(read(layer.keys[of_sequence]), rope, offset);
  sequence.values = read(layer.values[of_sequence]);
  if (queries.q_pe.defined()) {  // its logits do not depend on the offset
    sequence.q_pe = queries.q_pe.index_select(0, index.to(queries.q_pe.device()));
    sequence.k_pe = read(layer.k_pe[of_sequence]);
  }
  positions_.push_back(sequence.positions);
  rows_ += std::ssize(rows);
  sequences.push_back(std::move(sequence));
}

// Batches adjacent sequences as long as their padded scores and rows are few enough.
void AutoScorer::MakeBatches(std::span<const SampledSequence> sequences,
                             const at::Tensor& output_map) {
  size_t begin = 0;
  int64_t rows = 0, tokens = 0;
  const auto texts = [&](size_t first) {
    return TextsOfRows{static_cast<int64_t>(first), std::ssize(sequences)};
  };
  for (size_t end = 0; end < sequences.size(); ++end) {
    rows = std::max(rows, sequences[end].positions.size(0));
    tokens = std::max(tokens, sequences[end].keys.size(0));
    const AttentionSpec& a = spec_.attention;
    const int64_t values = tokens * std::max(a.num_q_heads * rows,
                                             a.num_kv_heads * std::max(a.head_dim, a.v_head_dim));
    if (end == begin || static_cast<int64_t>(end + 1 - begin) * values <= values_at_once_) continue;
    batches_.emplace_back(spec_.attention, sequences.subspan(begin, end - begin), windows_,
                          output_map, texts(begin));
    begin = end;
    rows = sequences[end].positions.size(0);
    tokens = sequences[end].keys.size(0);
  }
  batches_.emplace_back(spec_.attention, sequences.subspan(begin), windows_, output_map,
                        texts(begin));
}

int64_t AutoScorer::RowsBeyond(const CacheWindows& windows) const {
  int64_t rows = 0;
  for (const at::Tensor& positions : positions_)
    rows += BeyondWindows(positions, windows, spec_.attention).sum().item<int64_t>();
  return rows;
}

AutoScorer::Rotated AutoScorer::Rotate(Sides sides, bool keys) const {
  Rotated rotated{{}, ToDevice(sides, batches_[0].keys().device())};
  for (const SampledRows& batch : batches_) {
    Rotated::Rows rows;
    rows.rows = keys ? TurnedKeys(rotated.sides, batch.keys())
                     : TurnedValues(rotated.sides, batch.values());
    rows.sorted = SortedMagnitudes(rows.rows);
    if (keys) {
      rows.queries = TurnedQueries(rotated.sides, batch.queries());
      rows.exact_logits = batch.ExactLogits(rows.queries, rows.rows);
    }
    rotated.batches.push_back(std::move(rows));
  }
  return rotated;
}

AutoScorer::Sums AutoScorer::OfTrials(const Rotated& rotated, Trials trials, Quantizer quantizer,
                                      const Measure& measure) const {
  Sums sums;
  for (size_t i = 0; i < batches_.size(); ++i) {
    const SampledRows& batch = batches_[i];
    const Rotated::Rows& rows = rotated.batches[i];
    const int64_t values = std::max(batch.num_scores(), rows.rows[0].numel());
    const auto step = static_cast<size_t>(std::max<int64_t>(1, values_at_once_ / values));
    std::vector<Sums> parts;
    for (size_t begin = 0; begin < trials.size(); begin += step) {
      const Trials some = trials.subspan(begin, std::min(step, trials.size() - begin));
      const at::Tensor exact = OfSides(rows.rows, some);
      SidesOnDevice sides = OfSides(rotated.sides, some);
      parts.push_back(
          measure(batch, {{Quantized(exact, rows.sorted, sides.feedback, some, quantizer),
                           OfSides(rows.queries, some), OfSides(rows.exact_logits, some)},
                          exact,
                          std::move(sides)}));
    }
    Sums of_batch;
    for (size_t j = 0; j < parts[0].size(); ++j) {
      std::vector<at::Tensor> of_trials;
      for (const Sums& part : parts) of_trials.push_back(part[j]);
      of_batch.push_back(at::cat(of_trials));
    }
    Add(sums, of_batch);
  }
  return sums;
}

std::vector<HeadScores> AutoScorer::ScoreKeys(const Rotated& keys, Trials trials,
                                              Quantizer quantizer) const {
  const size_t in_use[] = {0};
  const Sums sums = OfTrials(keys, trials, quantizer, [&](const auto& batch, const Stored& stored) {
    return batch.KlSums(stored.keys, in_use);
  });
  return MeanOverRows(sums[0]);
}

// Divides sums over rows by the number of rows. [trials, num_kv_heads, 2 + texts]
std::vector<HeadScores> AutoScorer::MeanOverRows(const at::Tensor& sums) const {
  std::vector<double> rows(batches_[0].num_rows().size(), 0);
  for (const SampledRows& batch : batches_) {
    for (size_t i = 0; i < rows.size(); ++i) rows[i] += batch.num_rows()[i];
  }
  const auto ratio = static_cast<double>(spec_.attention.gqa_ratio());
  return ToScores(sums.cpu().div(at::tensor(rows, at::kDouble).mul_(ratio)), spec_);
}

std::vector<AutoScorer::WindowScores> AutoScorer::ScoreWindows(const Rotated& keys, Trials trials,
                                                               Quantizer quantizer) const {
  std::vector<size_t> all(windows_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const Sums sums = OfTrials(keys, trials, quantizer, [&](const auto& batch, const Stored& stored) {
    return batch.KlSums(stored.keys, all);
  });
  // [trials, windows, num_kv_heads]
  const at::Tensor of_heads = at::stack(sums, 1).narrow(3, 0, 2).sum(3);
  const auto count = static_cast<double>(rows_ * spec_.attention.gqa_ratio());
  const at::Tensor means = of_heads.div(count).cpu().contiguous();
  std::vector<WindowScores> of_trials;
  for (int64_t i = 0; i < means.size(0); ++i) {
    WindowScores& of_trial = of_trials.emplace_back();
    for (int64_t w = 0; w < means.size(1); ++w) {
      const double* from = means[i][w].const_data_ptr<double>();
      of_trial.emplace_back(from, from + means.size(2));
    }
  }
  return of_trials;
}

std::vector<double> AutoScorer::KeyOutputErrors(const Rotated& keys, const Trial& trial,
                                                Quantizer quantizer) const {
  const Sums sums =
      OfTrials(keys, {&trial, 1}, quantizer, [&](const auto& batch, const Stored& stored) {
        return Sums{batch.KeyErrorSums(stored.keys), batch.output_sums()};
      });
  const auto of_all = [](const at::Tensor& sum) { return sum.narrow(2, 0, 2).sum(2); };
  const at::Tensor errors = of_all(sums[0]).div(of_all(sums[1])).sqrt().cpu().contiguous();
  return {errors.const_data_ptr<double>(), errors.const_data_ptr<double>() + errors.numel()};
}

std::vector<HeadScores> AutoScorer::ScoreValues(const Rotated& values, Trials trials,
                                                Quantizer quantizer) const {
  const Sums sums =
      OfTrials(values, trials, quantizer, [&](const auto& batch, const Stored& stored) {
        return Sums{batch.ValueErrorSums(ValuesTurnedBack(stored.sides, stored.keys.stored))};
      });
  return ToScores(sums[0].div(OutputSums()).sqrt(), spec_);
}

std::vector<AutoScorer::LatentScores> AutoScorer::ScoreLatents(const Rotated& latents,
                                                               Trials trials,
                                                               Quantizer quantizer) const {
  const size_t in_use[] = {0};
  const Sums sums =
      OfTrials(latents, trials, quantizer, [&](const auto& batch, const Stored& stored) {
        return Sums{
            batch.KlSums(stored.keys, in_use)[0],
            batch.RelativeErrorSums(stored.keys, ValuesTurnedBack(stored.sides, stored.keys.stored),
                                    ValuesTurnedBack(stored.sides, stored.exact))};
      });
  std::vector<HeadScores> kl = MeanOverRows(sums[0]);
  std::vector<HeadScores> output = MeanOverRows(sums[1]);
  std::vector<LatentScores> scores;
  for (size_t i = 0; i < trials.size(); ++i)
    scores.push_back({std::move(kl[i]), std::move(output[i])});
  return scores;
}

at::Tensor AutoScorer::OutputSums() const {
  at::Tensor energies;
  for (const SampledRows& batch : batches_)
    energies = energies.defined() ? energies.add(batch.output_sums()) : batch.output_sums();
  return energies;
}

std::vector<HeadScores> AutoScorer::BySides(
    Sides sides, Trials trials, bool keys,
    const std::function<std::vector<HeadScores>(const Rotated&, Trials)>& score) const {
  int64_t values = 1;
  for (const SampledRows& batch : batches_)
    values += (keys ? batch.keys() : batch.values()).numel();
  const auto step = static_cast<size_t>(std::max<int64_t>(1, values_at_once_ / values));
  std::vector<HeadScores> scores;
  std::vector<Trial> some(trials.begin(), trials.end());
  auto next = some.begin();
  size_t end = 0;
  for (size_t begin = 0; begin < sides.size() && next != some.end(); begin = end) {
    // Sides that are scored together must all have error feedback, or none.
    const auto alike = [&](const CacheSide* side) {
      return side->feedback.empty() == sides[begin]->feedback.empty();
    };
    for (end = begin; end < std::min(sides.size(), begin + step) && alike(sides[end]);) ++end;
    const auto first = next;
    for (; next != some.end() && next->side < end; ++next) next->side -= begin;
    if (first == next) continue;
    const Rotated rotated = Rotate(sides.subspan(begin, end - begin), keys);
    std::ranges::move(score(rotated, {first, next}), std::back_inserter(scores));
  }
  OSCAR_CHECK_EQ(scores.size(), trials.size());
  return scores;
}

std::vector<HeadScores> AutoScorer::ScoreKeys(Sides sides, Trials trials,
                                              Quantizer quantizer) const {
  return BySides(sides, trials, true, [&](const Rotated& keys, Trials some) {
    return ScoreKeys(keys, some, quantizer);
  });
}

std::vector<HeadScores> AutoScorer::ScoreValues(Sides sides, Trials trials,
                                                Quantizer quantizer) const {
  return BySides(sides, trials, false, [&](const Rotated& values, Trials some) {
    return ScoreValues(values, some, quantizer);
  });
}

}  // namespace oscar
