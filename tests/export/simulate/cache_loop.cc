// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/simulate/cache_loop.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace oscar {
namespace {

void Append(LoopSide& side, const at::Tensor& rows) {
  const at::Tensor values = rows.contiguous();
  const float* data = values.const_data_ptr<float>();
  side.read.insert(side.read.end(), data, data + values.numel());
}

// Expects the newest query to read the same rows from the simulated cache as from `loop`: `rows`
// where `exact` says so, otherwise `quantized`.
void ExpectReads(const at::Tensor& quantized, const at::Tensor& rows, const ExactTokens& exact,
                 LoopSide& loop, double tolerance, const char* side) {
  const int64_t length = loop.tokens();
  const at::Tensor is_exact = ExactMask(exact, at::tensor({length - 1}, at::kLong), length)[0];
  const at::Tensor expected = at::tensor(loop.read).view({length, rows.size(1), rows.size(2)});
  const at::Tensor actual = at::where(is_exact.view({-1, 1, 1}), rows.narrow(0, 0, length),
                                      quantized.narrow(0, 0, length));
  const at::Tensor wrong = (actual - expected).abs().gt(tolerance * rows.abs().max()).flatten(1);
  ASSERT_FALSE(wrong.any().item<bool>())
      << side << " at length " << length << ": tokens "
      << wrong.any(1).nonzero().flatten().slice(0, 0, 8) << " differ";
}

}  // namespace

std::vector<float> LoopSide::Channel(int64_t token, int64_t count, size_t head, size_t channel) {
  std::vector<float> values;
  for (int64_t t = token; t < token + count; ++t) values.push_back(at(t, head, channel));
  return values;
}

void LoopSide::SetChannel(int64_t token, size_t head, size_t channel,
                          const std::vector<float>& values) {
  for (const float value : values) at(token++, head, channel) = value;
}

void ExpectSameReads(const LayerCache& cache, const CacheSides& rows, int64_t prefill,
                     CacheLoop loop, double tolerance) {
  const CacheSides quantized = cache.store(rows).quantized;
  Append(loop.k, rows.k.narrow(0, 0, prefill));
  Append(loop.v, rows.v.narrow(0, 0, prefill));
  loop.after_prefill(loop.k, loop.v);
  for (int64_t t = prefill; t < rows.k.size(0); ++t) {
    Append(loop.k, rows.k[t]);
    Append(loop.v, rows.v[t]);
    if (loop.before_attention) loop.before_attention(loop.k, loop.v);
    SCOPED_TRACE(testing::Message() << "prefill of " << prefill);
    ExpectReads(quantized.k, rows.k, cache.k_exact, loop.k, tolerance, "keys");
    ExpectReads(quantized.v, rows.v, cache.v_exact, loop.v, tolerance, "values");
    if (testing::Test::HasFailure()) return;
    loop.after_step(loop.k, loop.v);
  }
}

void ExpectEverythingExact(const LayerCache& cache, const CacheSides& rows) {
  const int64_t tokens = rows.k.size(0);
  const CacheSides quantized = cache.store(rows).quantized;
  const auto expect = [&](const at::Tensor& x, const at::Tensor& stored, const ExactTokens& exact) {
    const at::Tensor is_exact = ExactMask(exact, at::arange(tokens), tokens).tril();
    const at::Tensor same = stored.eq(x).flatten(1).all(1);
    EXPECT_TRUE(is_exact.logical_or(same).tril().equal(at::ones_like(is_exact).tril()));
  };
  expect(rows.k, quantized.k, cache.k_exact);
  expect(rows.v, quantized.v, cache.v_exact);
}

at::Tensor WholeRows(int64_t tokens, int64_t num_kv_heads, int64_t dim, uint64_t seed) {
  at::manual_seed(seed);
  at::Tensor rows = at::randn({tokens, num_kv_heads, dim}).mul_(4).round_();
  rows.select(-1, 1).mul_(8);  // an outlier channel
  return rows;
}

}  // namespace oscar
