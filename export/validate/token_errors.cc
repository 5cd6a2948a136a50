// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/token_errors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "calib/cache/logit_comparison.h"  // KlOfRows
#include "export/evaluate/position_buckets.h"
#include "export/validate/piece_sums.h"

namespace oscar {
namespace {

constexpr int64_t kLogitBytes = int64_t{256} << 20;  // for one float32 matrix of logits
constexpr int64_t kLeastRows = 16;

// Returns how many rows of logits to compare at once: all on a GPU, as many as fit into the caches
// on a CPU.
int64_t ComparedRows(at::Device device, int64_t rows, int64_t vocab_size) {
  constexpr int64_t kComparedBytes = 4 << 20;
  return device.is_cpu() ? std::clamp(kComparedBytes / (4 * vocab_size), int64_t{1}, rows) : rows;
}

template <typename T>
void Append(const at::Tensor& values, std::vector<T>& out) {
  const at::Tensor host = values.cpu().contiguous();
  const T* data = host.const_data_ptr<T>();
  out.insert(out.end(), data, data + host.numel());
}

at::Tensor IndexTensor(std::span<const ScoredToken> tokens, auto member, at::Device device) {
  std::vector<int64_t> values;
  for (const ScoredToken& token : tokens) values.push_back(static_cast<int64_t>(token.*member));
  return at::tensor(values, at::kLong).to(device);
}

// Rival ids, [n, width], in rows that are padded to equal width. `none` marks the padding. Empty if
// no token has rivals.
struct RivalIds {
  at::Tensor ids, none;  // `none`: 1 for padding
  at::Tensor any;        // [n] whether a token has rivals

  RivalIds Of(int64_t begin, int64_t end) const {
    if (!ids.defined()) return {};
    return {ids.slice(0, begin, end), none.slice(0, begin, end), any.slice(0, begin, end)};
  }
};
RivalIds RivalsOf(std::span<const ScoredToken> tokens, at::Device device) {
  size_t width = 0;
  for (const ScoredToken& token : tokens) width = std::max(width, token.rivals.size());
  if (width == 0) return {};
  std::vector<int64_t> ids;
  for (const ScoredToken& token : tokens) {
    ids.insert(ids.end(), token.rivals.begin(), token.rivals.end());
    ids.resize((static_cast<size_t>(&token - tokens.data()) + 1) * width, -1);
  }
  const at::Tensor table =
      at::tensor(ids, at::kLong).view({-1, static_cast<int64_t>(width)}).to(device);
  const at::Tensor none = table.lt(0);
  return {table.clamp_min(0), none, none.logical_not().any(1)};
}

LogAndScores Softmax(const at::Tensor& logits) {
  const at::Tensor log = logits.log_softmax(-1);
  return {log, log.exp()};
}

// Returns 1 where the id is likelier than all of its rivals. Without rivals, it must be the most
// likely token.
at::Tensor IsFirst(const at::Tensor& log_q, const at::Tensor& top, const at::Tensor& ids,
                   const RivalIds& rivals) {
  const at::Tensor first = top.eq(ids);
  if (!rivals.ids.defined()) return first;
  const at::Tensor best = log_q.gather(1, rivals.ids)
                              .masked_fill(rivals.none, -std::numeric_limits<double>::infinity())
                              .amax(1);
  return at::where(rivals.any, log_q.gather(1, ids.unsqueeze(1)).squeeze(1).gt(best), first);
}

}  // namespace

std::vector<TokenErrors> CompareTokens(const OutputHead& head, std::span<const at::Tensor> streams,
                                       std::span<const ScoredToken> tokens,
                                       const std::function<void(double part)>& on_part) {
  std::vector<TokenErrors> errors(streams.size());
  int64_t step = kLeastRows;
  for (size_t begin = 0; begin < tokens.size();) {
    const auto piece =
        tokens.subspan(begin, std::min(tokens.size() - begin, static_cast<size_t>(step)));
    const at::Device device = streams[0].device();
    const at::Tensor rows = IndexTensor(piece, &ScoredToken::hidden_row, device);
    const at::Tensor ids = IndexTensor(piece, &ScoredToken::id, device);
    const RivalIds rivals = RivalsOf(piece, device);
    at::Tensor own_logits, own_top;
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      const at::Tensor logits = head.Logits(streams[stream].index_select(0, rows)).to(at::kFloat);
      const at::Tensor top = logits.argmax(-1);
      if (stream == 0) {
        own_logits = logits;
        own_top = top;
      }
      const int64_t at_once = ComparedRows(device, logits.size(0), logits.size(1));
      for (int64_t row = 0; row < logits.size(0); row += at_once) {
        const auto part = [&](const at::Tensor& x) { return x.slice(0, row, row + at_once); };
        const LogAndScores own = Softmax(part(own_logits)),
                           other = stream == 0 ? own : Softmax(part(logits));
        Append(KlOfRows(own, other), errors[stream].kl);
        Append(other.log.gather(1, part(ids).unsqueeze(1)).squeeze(1).neg(), errors[stream].nll);
        Append(
            IsFirst(other.log, part(top), part(ids), rivals.Of(row, row + at_once)).to(at::kByte),
            errors[stream].is_top1);
      }
      Append(top.eq(own_top).to(at::kByte), errors[stream].agrees);
      if (on_part) {
        const size_t done = begin * streams.size() + piece.size() * (stream + 1);
        on_part(static_cast<double>(done) / static_cast<double>(tokens.size() * streams.size()));
      }
    }
    begin += piece.size();
    step = std::max(kLeastRows, kLogitBytes / (4 * own_logits.size(1)));
  }
  return errors;
}

std::vector<ScoredToken> ScoredTokens(const std::vector<std::vector<int32_t>>& texts,
                                      int64_t first_row, int64_t score_from, int64_t exact_tokens,
                                      const CountedQueries& counted) {
  std::vector<ScoredToken> tokens;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<int64_t>(texts[i].size());
    const int64_t from = std::max(exact_tokens + 1, score_from < 0 ? length / 4 + 1 : score_from);
    for (int64_t position = from; position < length; ++position) {
      if (NumCounted(counted, i, position - 1, position) == 0) continue;
      tokens.push_back({.sequence = static_cast<int64_t>(i),
                        .position = position,
                        .length = length,
                        .hidden_row = first_row + position - 1,
                        .id = texts[i][static_cast<size_t>(position)]});
    }
    first_row += length;
  }
  return tokens;
}

MeanError MeanWithError(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return {};
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  if (values.size() == 1) return {mean, 0};
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / n / (n - 1))};
}

namespace {

// Returns the member "token_probability": the change p^ - p of the probability of the text's token.
measures::Distribution ProbabilityChange(const TokenErrors& arm, const TokenErrors& reference) {
  std::vector<double> changes, squares;
  for (size_t i = 0; i < arm.nll.size(); ++i) {
    changes.push_back(std::exp(-static_cast<double>(arm.nll[i])) -
                      std::exp(-static_cast<double>(reference.nll[i])));
    squares.push_back(changes.back() * changes.back());
  }
  measures::Distribution distribution = QuantilesOf({changes.begin(), changes.end()});
  const MeanError change = MeanWithError(changes), square = MeanWithError(squares);
  const double rms = std::sqrt(square.mean);
  distribution.mean = change.mean;
  distribution.error = change.error;
  distribution.rms = rms;
  distribution.rms_error = rms > 0 ? square.error / (2 * rms) : 0;  // d sqrt(x) = dx / (2 sqrt(x))
  return distribution;
}

// Adds the standard errors of next-token KL, perplexity and perplexity ratio.
void AddErrors(const TokenErrors& arm, const TokenErrors& reference, measures::TextErrors& text) {
  const std::vector<double> nll(arm.nll.begin(), arm.nll.end()), kl(arm.kl.begin(), arm.kl.end());
  std::vector<double> difference;
  for (size_t i = 0; i < nll.size(); ++i) difference.push_back(nll[i] - reference.nll[i]);
  text.token_kl.error = MeanWithError(kl).error;
  // Error propagation: d exp(x) = exp(x) dx.
  text.perplexity_error = text.perplexity * MeanWithError(nll).error;
  text.ppl_ratio_error = text.ppl_ratio * MeanWithError(difference).error;
}

}  // namespace

Json TextReport(std::span<const ScoredToken> tokens, const TokenErrors& arm,
                const TokenErrors& reference, int64_t resamples, uint64_t seed) {
  int64_t longest = 0;
  for (const ScoredToken& token : tokens) longest = std::max(longest, token.length);
  const std::vector<PositionBucket> buckets = MakePositionBuckets(longest, 0, 0);
  struct Sums {
    PieceSums nll, difference, kl;
  };
  Sums total;
  std::vector<Sums> in_bucket(buckets.size());
  double agree = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const ScoredToken& token = tokens[i];
    for (Sums* sums : {&total, &in_bucket[BucketOf(buckets, token.position)]}) {
      const auto add = [&](PieceSums& to, double value) {
        to.Add(token.sequence, token.position, token.length, value);
      };
      add(sums->nll, arm.nll[i]);
      add(sums->difference, static_cast<double>(arm.nll[i]) - reference.nll[i]);
      add(sums->kl, arm.kl[i]);
    }
    agree += arm.agrees[i];
  }
  measures::TextErrors errors;
  errors.scored_tokens = std::ssize(tokens);
  errors.perplexity = std::exp(total.nll.mean());
  errors.ppl_ratio = std::exp(total.difference.mean());
  errors.top1_agreement = agree / static_cast<double>(tokens.size());
  errors.token_kl = KlOf(total.kl, arm.kl, resamples, seed);
  errors.token_probability = ProbabilityChange(arm, reference);
  AddErrors(arm, reference, errors);
  const auto exp_interval = [&](const PieceSums& sums) {
    std::optional<Interval> interval = sums.Bootstrap(resamples, seed);
    if (interval) interval = {std::exp(interval->low), std::exp(interval->high)};
    return interval;
  };
  errors.perplexity_interval = exp_interval(total.nll);
  errors.ppl_ratio_interval = exp_interval(total.difference);
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (in_bucket[i].kl.count() == 0) continue;
    errors.by_position.push_back(
        {buckets[i].from, buckets[i].to, in_bucket[i].kl.mean(), in_bucket[i].nll.mean()});
  }
  Json json = errors;
  json[kPieces] = total.kl.ToJson();
  return json;
}

}  // namespace oscar
