// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that error feedback at the write reduces the errors of logits and outputs, compared with
// the same rotation without feedback.
#include <gtest/gtest.h>

#include <string>

#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

struct Pair {
  const char *with, *without;
};
constexpr Pair kPairs[] = {{"hadamard_feedback", "hadamard"},
                           {"oscar_shared_feedback", "oscar_shared"},
                           {"oscar_per_head_feedback", "oscar_per_head"}};

// Returns the mean of (q e)^2 over the key errors e and all queries q of their KV head.
double LogitError(const CacheSides& stored, const CacheSides& x, const at::Tensor& queries) {
  const at::Tensor error = (stored.k - x.k).to(at::kDouble).permute({1, 2, 0});  // [heads, d, t]
  const int64_t heads = error.size(0), dim = error.size(1);
  const at::Tensor q = queries.to(at::kDouble)
                           .view({queries.size(0), heads, -1, dim})
                           .permute({1, 0, 2, 3})
                           .reshape({heads, -1, dim});
  return at::matmul(q, error).square().mean().item<double>();
}

TEST(ErrorFeedback, QueriesSeeLessOfKeysAndValuesStayAsTheyWere) {
  RowContext rows(kWideRows);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const CacheSides x = RowsOf(rows, dtype);
    for (const auto& [with, without] : kPairs) {
      for (const bool clip : {false, true}) {
        SCOPED_TRACE(std::string(with) + (clip ? " clip" : ""));
        const CacheSides fed = Stored(rows, with, x, {.clip = clip}),
                         plain = Stored(rows, without, x, {.clip = clip});
        EXPECT_LT(LogitError(fed, x, rows.rows().q[0]),
                  0.8 * LogitError(plain, x, rows.rows().q[0]));
        EXPECT_TRUE(fed.v.equal(plain.v));
        EXPECT_EQ(fed.k.scalar_type(), dtype);
      }
    }
  }
}

TEST(ErrorFeedback, OutputsSeeLessOfValues) {
  at::manual_seed(3);
  const int64_t dim = kWideRows.v_head_dim, heads = kWideRows.num_kv_heads,
                readers = kWideRows.num_q_heads / heads;
  const at::Tensor decay = at::linspace(0, -4, 96).exp_().unsqueeze(1);
  const at::Tensor weight = at::randn({96, kWideRows.num_q_heads * dim}).mul_(decay);
  MethodContext::Options options;
  options.output_projection = [&](size_t) { return weight; };
  RowContext rows(kWideRows, options);
  const CacheSides x = RowsOf(rows, at::kFloat);
  const auto output_error = [&](const CacheSides& stored) {
    const at::Tensor error = (stored.v - x.v).unsqueeze(2).expand({-1, -1, readers, -1});
    double sum = 0;
    for (int64_t head = 0; head < heads * readers; ++head) {
      const at::Tensor part = weight.slice(1, head * dim, (head + 1) * dim);
      sum +=
          at::matmul(error.flatten(1, 2).select(1, head), part.t()).square().sum().item<double>();
    }
    return sum;
  };
  const CacheSides keys = Stored(rows, "oscar_shared_feedback", x, {.clip = true}),
                   both = Stored(rows, "oscar_shared_feedback_kv", x, {.clip = true});
  EXPECT_TRUE(both.k.equal(keys.k));
  EXPECT_LT(output_error(both), 0.9 * output_error(keys));
}

TEST(ErrorFeedback, NeedsMomentsAndForValuesTheModel) {
  RowContext rows(kSmallRows);
  EXPECT_TRUE(CacheMethodNamed("oscar_shared_feedback").available(rows.context()));
  EXPECT_FALSE(CacheMethodNamed("oscar_shared_feedback_kv").available(rows.context()));
  EXPECT_FALSE(CacheMethodNamed("auto_feedback").available(rows.context()));
}

}  // namespace
}  // namespace oscar
