// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares mixed attention with its definition in float64. Every query sees every visible position
// once: exactly if the rules of keys and of values say so, and otherwise as stored.
#include "export/validate/mixed_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "capture/model/run/device.h"

namespace oscar {
namespace {

struct Case {
  int64_t tokens, num_q_heads, num_kv_heads, d, dv;
  std::optional<int64_t> window;
  ExactSides exact;
};

at::Tensor Definition(const Case& c, const AttentionSpec& spec, const at::Tensor& q,
                      const MixedCache& cache) {
  const at::Tensor i = at::arange(c.tokens).unsqueeze(1), j = at::arange(c.tokens).unsqueeze(0);
  at::Tensor k_exact = at::zeros({c.tokens, c.tokens}, at::kBool), v_exact = k_exact.clone();
  const auto is_exact = [](const ExactTokens& tokens, int64_t query, int64_t key) {
    return key < tokens.sink || (tokens.quantized_end && key >= tokens.quantized_end(query + 1));
  };
  for (int64_t query = 0; query < c.tokens; ++query) {
    for (int64_t key = 0; key <= query; ++key) {
      k_exact.accessor<bool, 2>()[query][key] = is_exact(c.exact.k, query, key);
      v_exact.accessor<bool, 2>()[query][key] = is_exact(c.exact.v, query, key);
    }
  }
  at::Tensor visible = (i - j).ge(0);
  if (c.window) visible = visible.logical_and((i - j).lt(*c.window));
  std::vector<at::Tensor> heads;
  for (int64_t h = 0; h < c.num_q_heads; ++h) {
    const int64_t kv = h / spec.gqa_ratio();
    const auto of = [](const at::Tensor& x, int64_t head) { return x.select(1, head); };
    const at::Tensor logits = at::where(k_exact, of(q, h).mm(of(cache.k, kv).t()),
                                        of(q, h).mm(of(cache.k_stored, kv).t()))
                                  .mul(spec.scale)
                                  .masked_fill(visible.logical_not(), -INFINITY);
    const at::Tensor p = logits.softmax(-1);
    heads.push_back(p.masked_fill(v_exact.logical_not(), 0).mm(of(cache.v, kv)) +
                    p.masked_fill(v_exact, 0).mm(of(cache.v_stored, kv)));
  }
  return at::stack(heads, 1);
}

void Expect(const Case& c) {
  AttentionSpec spec;
  spec.num_q_heads = c.num_q_heads;
  spec.num_kv_heads = c.num_kv_heads;
  spec.head_dim = c.d;
  spec.v_head_dim = c.dv;
  spec.scale = 1 / std::sqrt(static_cast<double>(c.d));
  spec.window = c.window;
  at::manual_seed(3);
  const auto rows = [&](int64_t heads, int64_t dim) {
    return at::randn({c.tokens, heads, dim}, at::kDouble);
  };
  const at::Tensor q = rows(c.num_q_heads, c.d);
  const MixedCache cache{rows(c.num_kv_heads, c.d), rows(c.num_kv_heads, c.dv),
                         rows(c.num_kv_heads, c.d), rows(c.num_kv_heads, c.dv)};
  at::Tensor out = at::empty({c.tokens, c.num_q_heads, c.dv}, at::kDouble);
  MixedMasks masks;
  MixedAttention(spec, c.exact, q, cache, masks, out);
  out.fill_(NAN);
  MixedAttention(spec, c.exact, q, cache, masks, out);  // with the masks of the first call
  EXPECT_LT((out - Definition(c, spec, q, cache)).abs().max().item<double>(), 1e-12);
}

ExactSides InWindows(const CacheWindows& windows) {
  return {ExactInWindows(windows), ExactInWindows(windows)};
}

void ExpectAtAnyReach(const ExactSides& exact) {
  for (const std::optional<int64_t> window :
       {std::optional<int64_t>(), std::optional<int64_t>(100), std::optional<int64_t>(600)}) {
    SCOPED_TRACE(testing::Message() << "window " << window.value_or(0));
    Expect({700, 4, 2, 16, 8, window, exact});  // more than one chunk of queries
    Expect({40, 3, 1, 8, 8, window, exact});
  }
}

TEST(MixedAttention, IsItsDefinitionInWindows) {
  for (const CacheWindows windows :
       {CacheWindows{0, 0}, CacheWindows{4, 8}, CacheWindows{64, 256}, CacheWindows{0, 32},
        CacheWindows{16, 0}, CacheWindows{1, 1}}) {
    SCOPED_TRACE(testing::Message() << windows.sink << "/" << windows.recent);
    ExpectAtAnyReach(InWindows(windows));
  }
}

TEST(MixedAttention, IsItsDefinitionWhateverIsExact) {
  const ExactTokens blocks = ExactUntilBlocksFill(32, 128, 128),
                    groups = ExactUntilBlocksFill(0, 32, 0), windows = ExactInWindows({16, 100}),
                    always{0, [](int64_t) { return 0; }};
  for (const ExactSides& exact :
       {ExactSides{blocks, blocks}, ExactSides{groups, windows}, ExactSides{windows, blocks},
        ExactSides{groups, {}}, ExactSides{{}, windows}, ExactSides{always, groups},
        ExactSides{ExactInWindows({5, 0}), always}})
    ExpectAtAnyReach(exact);
}

TEST(MixedAttention, InsideTheWindowsTheStoredCacheIsNotRead) {
  AttentionSpec spec;
  spec.num_q_heads = spec.num_kv_heads = 1;
  spec.head_dim = spec.v_head_dim = 8;
  spec.scale = 0.35;
  const at::Tensor x = at::randn({40, 1, 8});
  at::Tensor out = at::empty_like(x), expected = at::empty_like(x);
  MixedMasks masks;
  MixedAttention(spec, InWindows({10, 30}), x, {x, x, at::zeros_like(x), at::zeros_like(x)}, masks,
                 out);
  CausalAttention(spec, x, x, x, {}, expected);
  EXPECT_LT((out - expected).abs().max().item<double>(), 1e-6);
}

// On a GPU, the results of flash attention over parts of the keys are joined. If windows move in
// blocks, attention uses masks instead.
TEST(MixedAttentionGpu, IsItsDefinitionInWindows) {
  if (NumGpus() == 0) GTEST_SKIP() << "needs a GPU";
  const ExactTokens in_blocks = ExactUntilBlocksFill(7, 8, 100);
  for (const ExactSides& exact :
       {InWindows({4, 8}), InWindows({64, 256}), InWindows({0, 32}), InWindows({1, 1}),
        InWindows({600, 300}), ExactSides{in_blocks, in_blocks}}) {
    SCOPED_TRACE(testing::Message() << exact.k.sink << ", " << exact.k.quantized_end(1500));
    const Case c{1500, 4, 2, 128, 128, std::nullopt, exact};
    AttentionSpec spec;
    spec.num_q_heads = c.num_q_heads;
    spec.num_kv_heads = c.num_kv_heads;
    spec.head_dim = spec.v_head_dim = c.d;
    spec.scale = 1 / std::sqrt(static_cast<double>(c.d));
    at::manual_seed(5);
    const auto rows = [&](int64_t heads) {
      return at::randn({c.tokens, heads, c.d}, at::kDouble).to(at::kBFloat16).to(at::kDouble);
    };
    const at::Tensor q = rows(c.num_q_heads);
    const MixedCache cache{rows(2), rows(2), rows(2), rows(2)};
    const auto there = [](const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); };
    const MixedCache on_gpu{there(cache.k), there(cache.v), there(cache.k_stored),
                            there(cache.v_stored)};
    at::Tensor out = there(at::full_like(q, NAN));
    MixedMasks masks;
    MixedAttention(spec, c.exact, there(q), on_gpu, masks, out);
    out.fill_(NAN);
    MixedAttention(spec, c.exact, there(q), on_gpu, masks, out);
    const at::Tensor expected = Definition(c, spec, q, cache);
    EXPECT_LT((out.cpu().to(at::kDouble) - expected).abs().max().item<double>(), 3e-2);
    EXPECT_LT((out.cpu().to(at::kDouble) - expected).norm().item<double>(),
              5e-3 * expected.norm().item<double>());
  }
}

}  // namespace
}  // namespace oscar
