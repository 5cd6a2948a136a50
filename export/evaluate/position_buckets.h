// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Selects the query rows that are measured, and groups them by position for the report. Positions
// count from 0, so the query at position p sees p + 1 keys. Trap: a row that sees only exact keys
// has KL 0 and would lower any mean. Such rows have their own bucket and do not count in the
// headline KL.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace oscar {

inline constexpr int64_t kPositionBins = 16;

// Selects rows of a sequence of `length` tokens, distinct and in ascending order. Divides the
// sequence into 16 equal bins and takes rows_per_sequence / 16 (rounded up) evenly spaced rows from
// each, including its last row. Returns all rows if rows_per_sequence is 0 or at least `length`.
// Uses no random numbers.
std::vector<int64_t> SelectRows(int64_t length, int64_t rows_per_sequence);

// Returns the first row that counts in the headline KL, which is a mean over the second half of the
// sequence. Skips rows that see at most `exact_tokens` tokens, because the windows hold all of
// these.
inline int64_t FirstHeadlineRow(int64_t length, int64_t exact_tokens) {
  return std::max(length / 2, exact_tokens);
}

// Whether the query at `position` sees only keys in the windows, which are exact.
inline bool InsideWindows(int64_t position, int64_t sink_tokens, int64_t recent_tokens) {
  return position < sink_tokens + recent_tokens;
}

struct PositionBucket {
  int64_t from = 0, to = 0;  // positions [from, to)
  bool inside_windows = false;
};

// Divides [0, longest) into up to 16 equal bins. Splits the bin in which the windows end, so that
// each bucket is inside or outside. With windows of 0 tokens, no position is inside.
std::vector<PositionBucket> MakePositionBuckets(int64_t longest, int64_t sink_tokens,
                                                int64_t recent_tokens);

// Returns the index of the bucket that holds `position`, which must be in [0, longest).
size_t BucketOf(std::span<const PositionBucket> buckets, int64_t position);

}  // namespace oscar
