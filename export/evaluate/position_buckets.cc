// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/position_buckets.h"

#include <numeric>

#include "linalg/base/check.h"

namespace oscar {

std::vector<int64_t> SelectRows(int64_t length, int64_t rows_per_sequence) {
  OSCAR_CHECK_LE(0, length);
  OSCAR_CHECK_LE(0, rows_per_sequence);
  std::vector<int64_t> rows;
  if (rows_per_sequence == 0 || rows_per_sequence >= length) {
    rows.resize(static_cast<size_t>(length));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    return rows;
  }
  const int64_t per_bin = (rows_per_sequence + kPositionBins - 1) / kPositionBins;
  for (int64_t bin = 0; bin < kPositionBins; ++bin) {
    const int64_t begin = bin * length / kPositionBins;
    const int64_t size = (bin + 1) * length / kPositionBins - begin;
    const int64_t count = std::min(per_bin, size);
    for (int64_t i = 1; i <= count; ++i) rows.push_back(begin + i * size / count - 1);
  }
  return rows;
}

std::vector<PositionBucket> MakePositionBuckets(int64_t longest, int64_t sink_tokens,
                                                int64_t recent_tokens) {
  OSCAR_CHECK_LE(1, longest);
  const int64_t edge = sink_tokens + recent_tokens;
  std::vector<int64_t> cuts = {0, std::min(edge, longest)};
  for (int64_t bin = 1; bin <= kPositionBins; ++bin) cuts.push_back(bin * longest / kPositionBins);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<PositionBucket> buckets;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    buckets.push_back({cuts[i], cuts[i + 1], InsideWindows(cuts[i], sink_tokens, recent_tokens)});
  }
  return buckets;
}

size_t BucketOf(std::span<const PositionBucket> buckets, int64_t position) {
  const auto found = std::find_if(buckets.begin(), buckets.end(), [&](const PositionBucket& b) {
    return b.from <= position && position < b.to;
  });
  OSCAR_CHECK(found != buckets.end());
  return static_cast<size_t>(found - buckets.begin());
}

}  // namespace oscar
