// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/rank_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "calib/run/plan.h"  // DocumentWork
#include "capture/model/run/token_layout.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns how many adjacent spans each rank takes, at least one, if no rank may get more work than
// `most`. Returns nothing if that is impossible.
std::vector<size_t> Fill(const std::vector<double>& work, double most, size_t ranks) {
  std::vector<size_t> counts;
  size_t next = 0;
  while (counts.size() < ranks) {
    const size_t others = ranks - counts.size() - 1;  // each needs at least one
    const size_t begin = next;
    double sum = 0;
    while (next + others < work.size() && sum + work[next] <= most) sum += work[next++];
    if (next == begin) return {};
    counts.push_back(next - begin);
  }
  return next == work.size() ? counts : std::vector<size_t>();
}

// Joins the spans of each stretch (StretchOf) into one.
std::vector<Span> Stretches(const std::vector<Span>& spans, int64_t token_chunk) {
  std::vector<Span> stretches;
  for (const Span& span : spans) {
    if (stretches.empty() || StretchOf(stretches.back().first_token, token_chunk) !=
                                 StretchOf(span.first_token, token_chunk)) {
      stretches.push_back(span);
      continue;
    }
    stretches.back().num_sequences += span.num_sequences;
    stretches.back().num_tokens += span.num_tokens;
  }
  return stretches;
}

}  // namespace

std::vector<RankShare> ShareOut(const ModelSpec& spec, const std::vector<int64_t>& lengths,
                                int64_t token_chunk, int ranks, bool apart) {
  const std::vector<const LayerSpec*> layers = AllLayers(spec);
  const bool experts = std::ranges::any_of(
      layers, [](const LayerSpec* layer) { return layer->experts.has_value(); });
  std::vector<Span> spans = MakeSpans(lengths, token_chunk);
  if (apart && experts) spans = Stretches(spans, token_chunk);
  const auto count = static_cast<size_t>(ranks);
  if (spans.size() < count) {
    throw UsageError(fmt::format(
        "{} ranks or shards were requested, but the data makes only {} {} of up to {} tokens "
        "(documents are never divided); give at most that many, or more --tokens",
        ranks, spans.size(), spans.size() == 1 ? "piece" : "pieces",
        apart && experts ? kChunksOfStretch * token_chunk : token_chunk));
  }
  std::vector<double> work;  // for each span
  for (const Span& span : spans) {
    double sum = 0;
    for (size_t i = 0; i < span.num_sequences; ++i)
      sum += DocumentWork(spec, lengths[span.first_sequence + i]);
    work.push_back(sum);
  }
  double enough = std::accumulate(work.begin(), work.end(), 0.0), too_little = 0;
  for (int step = 0; step < 50; ++step) {
    const double middle = (too_little + enough) / 2;
    (Fill(work, middle, count).empty() ? too_little : enough) = middle;
  }
  std::vector<RankShare> shares;
  size_t next = 0;
  for (const size_t of_rank : Fill(work, enough, count)) {
    RankShare share{.first_sequence = spans[next].first_sequence,
                    .first_token = spans[next].first_token};
    for (const size_t end = next + of_rank; next < end; ++next) {
      share.num_sequences += spans[next].num_sequences;
      share.num_tokens += spans[next].num_tokens;
      share.work += work[next];
    }
    shares.push_back(share);
  }
  OSCAR_CHECK_EQ(shares.size(), count);
  return shares;
}

}  // namespace oscar
