// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixed attention against its definition, written out in float64: every query sees every visible
// position once, exact where the windows say so.
#include "export/validate/mixed_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace oscar {
namespace {

struct Case {
  int64_t tokens, num_q_heads, num_kv_heads, d, dv;
  std::optional<int64_t> window;
  CacheWindows windows;
};

at::Tensor Definition(const Case& c, const AttentionSpec& spec, const at::Tensor& q,
                      const at::Tensor& k, const at::Tensor& v, const at::Tensor& k_stored,
                      const at::Tensor& v_stored) {
  const at::Tensor i = at::arange(c.tokens).unsqueeze(1), j = at::arange(c.tokens).unsqueeze(0);
  const at::Tensor exact = (i - j).lt(c.windows.recent).logical_or(j.lt(c.windows.sink));
  at::Tensor visible = (i - j).ge(0);
  if (c.window) visible = visible.logical_and((i - j).lt(*c.window));
  std::vector<at::Tensor> heads;
  for (int64_t h = 0; h < c.num_q_heads; ++h) {
    const int64_t kv = h / spec.gqa_ratio();
    const auto of = [](const at::Tensor& x, int64_t head) { return x.select(1, head); };
    const at::Tensor logits =
        at::where(exact, of(q, h).mm(of(k, kv).t()), of(q, h).mm(of(k_stored, kv).t()))
            .mul(spec.scale)
            .masked_fill(visible.logical_not(), -INFINITY);
    const at::Tensor p = logits.softmax(-1);
    heads.push_back(p.masked_fill(exact.logical_not(), 0).mm(of(v, kv)) +
                    p.masked_fill(exact, 0).mm(of(v_stored, kv)));
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
  const at::Tensor q = rows(c.num_q_heads, c.d), k = rows(c.num_kv_heads, c.d),
                   v = rows(c.num_kv_heads, c.dv), k_stored = rows(c.num_kv_heads, c.d),
                   v_stored = rows(c.num_kv_heads, c.dv);
  at::Tensor out = at::empty({c.tokens, c.num_q_heads, c.dv}, at::kDouble);
  MixedAttention(spec, c.windows, q, k, v, k_stored, v_stored, out);
  const at::Tensor expected = Definition(c, spec, q, k, v, k_stored, v_stored);
  EXPECT_LT((out - expected).abs().max().item<double>(), 1e-12);
}

TEST(MixedAttention, IsItsDefinition) {
  for (const CacheWindows windows :
       {CacheWindows{0, 0}, CacheWindows{4, 8}, CacheWindows{64, 256}, CacheWindows{0, 32},
        CacheWindows{16, 0}, CacheWindows{1, 1}}) {
    for (const std::optional<int64_t> window :
         {std::optional<int64_t>(), std::optional<int64_t>(100), std::optional<int64_t>(600)}) {
      SCOPED_TRACE(testing::Message()
                   << windows.sink << "/" << windows.recent << " window " << window.value_or(0));
      Expect({700, 4, 2, 16, 8, window, windows});  // beyond one chunk of queries
      Expect({40, 3, 1, 8, 8, window, windows});
    }
  }
}

TEST(MixedAttention, InsideTheWindowsTheStoredCacheIsNotRead) {
  AttentionSpec spec;
  spec.num_q_heads = spec.num_kv_heads = 1;
  spec.head_dim = spec.v_head_dim = 8;
  spec.scale = 0.35;
  const at::Tensor x = at::randn({40, 1, 8});
  at::Tensor out = at::empty_like(x), expected = at::empty_like(x);
  MixedAttention(spec, {10, 30}, x, x, x, at::zeros_like(x), at::zeros_like(x), out);
  CausalAttention(spec, x, x, x, {}, expected);
  EXPECT_LT((out - expected).abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace oscar
