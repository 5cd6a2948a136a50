// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/held_out.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "linalg/base/check.h"

namespace oscar {

std::string_view HeldOutKindName(HeldOutKind kind) {
  switch (kind) {
    case HeldOutKind::kNone:
      return "none";
    case HeldOutKind::kDomains:
      return "domains";
    case HeldOutKind::kDocuments:
      return "documents";
    case HeldOutKind::kTailRows:
      return "tail rows";
  }
  OSCAR_CHECK(false);
}

std::vector<int64_t> CountedRows(const CountedQueries& counted, size_t sequence, int64_t begin,
                                 int64_t end) {
  const bool all = counted.empty() || counted.at(sequence).empty();
  std::vector<int64_t> rows;
  for (int64_t row = begin; row < end; ++row)
    if (all || counted[sequence][static_cast<size_t>(row)] != 0) rows.push_back(row);
  return rows;
}

int64_t NumCounted(const CountedQueries& counted, size_t sequence, int64_t begin, int64_t end) {
  if (counted.empty() || counted.at(sequence).empty()) return end - begin;
  const auto first = counted[sequence].begin();
  return std::count(first + begin, first + end, 1);
}

double ShareOfDocuments(size_t num_sequences, double share) {
  if (share == 0 || num_sequences < 3) return share;
  const size_t documents = std::clamp<size_t>(num_sequences / 4, 1, 3);
  return std::max(share, 1 / static_cast<double>(num_sequences / documents));
}

const std::vector<uint8_t>* HeldOutSplit::CountedOf(size_t sequence) const {
  return counted.empty() || counted.at(sequence).empty() ? nullptr : &counted[sequence];
}

int64_t HeldOutSplit::NumFitQueries() const {
  int64_t queries = 0;
  for (size_t i = 0; i < fit_rows.size(); ++i) queries += NumCounted(counted, i, 0, fit_rows[i]);
  return queries;
}

int64_t HeldOutSplit::NumHeldOutQueries() const {
  int64_t queries = held_out_tokens;
  for (size_t i = 0; i < fit_rows.size(); ++i) {
    if (CountedOf(i) == nullptr) continue;
    const auto length = static_cast<int64_t>(counted[i].size());
    queries -= length - fit_rows[i] - NumCounted(counted, i, fit_rows[i], length);
  }
  return queries;
}

int64_t HeldOutSplit::NumKeptRows(size_t sequence, int64_t tokens, int64_t error_rows) const {
  return std::min(NumCounted(counted, sequence, fit_rows.at(sequence), tokens), error_rows);
}

HeldOutSplit SplitHeldOut(const std::vector<int64_t>& sequence_lengths, double share,
                          CountedQueries counted) {
  OSCAR_CHECK(share >= 0 && share <= 0.5);
  HeldOutSplit split;
  split.fit_rows = sequence_lengths;
  split.counted = std::move(counted);
  if (share == 0) return split;

  const int64_t total = split.NumFitQueries();
  const size_t stride = static_cast<size_t>(std::llround(1 / share));
  for (size_t i = stride - 1; i < sequence_lengths.size(); i += stride) {
    split.fit_rows[i] = 0;
    split.held_out_tokens += sequence_lengths[i];
  }
  split.kind = HeldOutKind::kDocuments;
  const int64_t queries = split.NumHeldOutQueries();
  if (queries > 0 && 3 * queries <= total) return split;

  split.kind = HeldOutKind::kTailRows;
  split.held_out_tokens = 0;
  for (size_t i = 0; i < sequence_lengths.size(); ++i) {
    const int64_t length = sequence_lengths[i];
    const std::vector<int64_t> rows = CountedRows(split.counted, i, 0, length);
    const auto tail =
        static_cast<size_t>(std::floor(share * static_cast<double>(std::ssize(rows))));
    split.fit_rows[i] = tail == 0 ? length : rows[rows.size() - tail];
    split.held_out_tokens += length - split.fit_rows[i];
  }
  if (split.held_out_tokens == 0) split.kind = HeldOutKind::kNone;
  return split;
}

HeldOutSplit SplitByDomain(const std::vector<int64_t>& sequence_lengths,
                           const std::vector<int32_t>& domains) {
  HeldOutSplit split;
  split.fit_rows = sequence_lengths;
  std::vector<int32_t> order;
  for (const int32_t domain : domains) {
    if (std::ranges::find(order, domain) == order.end()) order.push_back(domain);
  }
  if (order.size() < 2) return split;
  OSCAR_CHECK_EQ(domains.size(), sequence_lengths.size());
  const size_t stride = std::min<size_t>(3, order.size());
  for (size_t i = 0; i < domains.size(); ++i) {
    const auto domain = std::ranges::find(order, domains[i]) - order.begin();
    if (static_cast<size_t>(domain) % stride != stride - 1) continue;
    split.fit_rows[i] = 0;
    split.held_out_tokens += sequence_lengths[i];
  }
  split.kind = HeldOutKind::kDomains;
  return split;
}

HeldOutSplit SplitOf(const std::vector<int64_t>& sequence_lengths,
                     const std::vector<int32_t>& domains, double share, bool chooses,
                     CountedQueries counted) {
  if (chooses && share > 0) {
    HeldOutSplit split = SplitByDomain(sequence_lengths, domains);
    split.counted = counted;
    if (split.kind == HeldOutKind::kDomains && split.NumFitQueries() > 0 &&
        split.NumHeldOutQueries() > 0)
      return split;
  }
  if (chooses) share = ShareOfDocuments(sequence_lengths.size(), share);
  return SplitHeldOut(sequence_lengths, share, std::move(counted));
}

}  // namespace oscar
