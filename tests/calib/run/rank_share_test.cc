// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/rank_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "calib/run/plan.h"
#include "capture/model/run/token_layout.h"
#include "capture/model/spec/model_spec.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns the least work of the busiest of `ranks` ranks, by exhaustive search over all cuts.
double Best(const std::vector<double>& work, size_t begin, int ranks) {
  if (ranks == 1)
    return std::accumulate(work.begin() + static_cast<std::ptrdiff_t>(begin), work.end(), 0.0);
  double best = std::numeric_limits<double>::infinity(), own = 0;
  for (size_t end = begin + 1; end + static_cast<size_t>(ranks) <= work.size() + 1; ++end) {
    own += work[end - 1];
    best = std::min(best, std::max(own, Best(work, end, ranks - 1)));
  }
  return best;
}

TEST(RankShare, IsWholeSpansInARowAndAsEvenAsTheyAllow) {
  const ModelSpec spec = ReadModelSpec(TestData("tiny-qwen3/config.json").parent_path(), {});
  const std::vector<int64_t> lengths = {300,  900, 1500, 4000, 20,  30,
                                        2000, 800, 700,  3000, 100, 2500};
  const std::vector<Span> spans = MakeSpans(lengths, 2048);
  std::vector<double> work;
  for (const Span& span : spans) {
    double sum = 0;
    for (size_t i = 0; i < span.num_sequences; ++i)
      sum += DocumentWork(spec, lengths[span.first_sequence + i]);
    work.push_back(sum);
  }
  for (int ranks = 1; ranks <= static_cast<int>(spans.size()); ++ranks) {
    const std::vector<RankShare> shares = ShareOut(spec, lengths, 2048, ranks);
    ASSERT_EQ(shares.size(), static_cast<size_t>(ranks));
    size_t sequence = 0;
    int64_t token = 0;
    double most = 0;
    for (const RankShare& share : shares) {
      EXPECT_EQ(share.first_sequence, sequence);
      EXPECT_EQ(share.first_token, token);
      EXPECT_GT(share.num_sequences, 0U);
      EXPECT_TRUE(std::ranges::any_of(
          spans, [&](const Span& span) { return span.first_sequence == sequence; }));
      sequence += share.num_sequences;
      token += share.num_tokens;
      most = std::max(most, share.work);
    }
    EXPECT_EQ(sequence, lengths.size());
    EXPECT_NEAR(most, Best(work, 0, ranks), 1e-9 * most);
  }
  EXPECT_THROW(ShareOut(spec, lengths, 2048, static_cast<int>(spans.size()) + 1), UsageError);
}

TEST(RankShare, CountsAttentionWhichGrowsWithTheSquare) {
  const ModelSpec spec = ReadModelSpec(TestData("tiny-qwen3/config.json").parent_path(), {});
  EXPECT_GT(DocumentWork(spec, 4000), 4 * DocumentWork(spec, 1000));
}

}  // namespace
}  // namespace oscar
