// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The query rows that are measured, and their grouping by position in the report. A position is
// 0-based, so the query at position p sees p + 1 keys. Trap: rows whose keys are all exact have KL
// 0 and would lower any mean. They have their own bucket, and headline rows exclude them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace oscar {

inline constexpr int64_t kPositionBins = 16;

// Selects rows of a sequence of `length` tokens: 16 equal bins with rows_per_sequence / 16 (rounded
// up) evenly spaced rows, each the last of its step, so row length - 1 is included. Ascending and
// distinct; all rows if rows_per_sequence is 0 or at least `length`. Not random.
std::vector<int64_t> SelectRows(int64_t length, int64_t rows_per_sequence);

// Returns the first row that counts in the headline KL, a mean over the second half of the
// sequence. Leaves out rows that see at most `exact_tokens` tokens, which the windows hold
// completely.
inline int64_t FirstHeadlineRow(int64_t length, int64_t exact_tokens) {
  return std::max(length / 2, exact_tokens);
}

// Whether the query at `position` sees only keys that the windows hold.
inline bool InsideWindows(int64_t position, int64_t sink_tokens, int64_t recent_tokens) {
  return position < sink_tokens + recent_tokens;
}

struct PositionBucket {
  int64_t from = 0, to = 0;  // positions [from, to)
  bool inside_windows = false;
};

// Covers [0, longest) with up to 16 equal bins. The bin with the edge of the windows is cut in two.
// With windows of 0 tokens, no position is inside.
std::vector<PositionBucket> MakePositionBuckets(int64_t longest, int64_t sink_tokens,
                                                int64_t recent_tokens);

// Returns the index of the bucket that holds `position`, which must be in [0, longest).
size_t BucketOf(std::span<const PositionBucket> buckets, int64_t position);

}  // namespace oscar
