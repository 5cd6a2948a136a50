// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/held_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "linalg/check.h"

namespace oscar {

std::string_view HeldOutKindName(HeldOutKind kind) {
  switch (kind) {
    case HeldOutKind::kNone:
      return "none";
    case HeldOutKind::kDocuments:
      return "documents";
    case HeldOutKind::kTailRows:
      return "tail rows";
  }
  OSCAR_CHECK(false);
}

double ShareOfDocuments(size_t num_sequences, double share) {
  if (share == 0 || num_sequences < 3) return share;
  const size_t documents = std::clamp<size_t>(num_sequences / 4, 1, 3);
  return std::max(share, 1 / static_cast<double>(num_sequences / documents));
}

int64_t HeldOutSplit::NumKeptRows(size_t sequence, int64_t tokens, int64_t error_rows) const {
  return std::min(tokens - fit_rows.at(sequence), error_rows);
}

HeldOutSplit SplitHeldOut(const std::vector<int64_t>& sequence_lengths, double share) {
  OSCAR_CHECK(share >= 0 && share <= 0.5);
  HeldOutSplit split;
  split.fit_rows = sequence_lengths;
  if (share == 0) return split;

  const int64_t total =
      std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0});
  const size_t stride = static_cast<size_t>(std::llround(1 / share));
  for (size_t i = stride - 1; i < sequence_lengths.size(); i += stride) {
    split.fit_rows[i] = 0;
    split.held_out_tokens += sequence_lengths[i];
  }
  split.kind = HeldOutKind::kDocuments;
  if (split.held_out_tokens > 0 && 3 * split.held_out_tokens <= total) return split;

  split.kind = HeldOutKind::kTailRows;
  split.held_out_tokens = 0;
  for (size_t i = 0; i < sequence_lengths.size(); ++i) {
    const auto tail =
        static_cast<int64_t>(std::floor(share * static_cast<double>(sequence_lengths[i])));
    split.fit_rows[i] = sequence_lengths[i] - tail;
    split.held_out_tokens += tail;
  }
  if (split.held_out_tokens == 0) split.kind = HeldOutKind::kNone;
  return split;
}

HeldOutSplit SplitOf(const std::vector<int64_t>& sequence_lengths,
                     const CalibrationOptions& options) {
  const double share = options.automatic.enabled
                           ? ShareOfDocuments(sequence_lengths.size(), options.held_out)
                           : options.held_out;
  return SplitHeldOut(sequence_lengths, share);
}

}  // namespace oscar
