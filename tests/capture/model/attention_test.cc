// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/capture/model/golden.h"

namespace oscar {
namespace {

// Computes attention in float64 from its definition, one score at a time.
at::Tensor Definition(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v) {
  const at::Tensor wide_q = q.to(at::kDouble), wide_k = k.to(at::kDouble),
                   wide_v = v.to(at::kDouble);
  at::Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, at::kDouble).zero_();
  const auto query = wide_q.accessor<double, 3>(), key = wide_k.accessor<double, 3>(),
             value = wide_v.accessor<double, 3>();
  auto result = out.accessor<double, 3>();
  for (int64_t i = 0; i < q.size(0); ++i) {
    for (int64_t h = 0; h < spec.num_q_heads; ++h) {
      const int64_t kv = h / spec.gqa_ratio();
      const int64_t first = spec.window ? std::max<int64_t>(0, i - *spec.window + 1) : 0;
      std::vector<double> weights;
      double sum = 0;
      for (int64_t j = first; j <= i; ++j) {
        double score = 0;
        for (int64_t d = 0; d < spec.head_dim; ++d) score += query[i][h][d] * key[j][kv][d];
        score *= spec.scale;
        if (spec.softcap != 0) score = spec.softcap * std::tanh(score / spec.softcap);
        weights.push_back(std::exp(score));
        sum += weights.back();
      }
      if (!spec.sink_logits.empty()) sum += std::exp(spec.sink_logits[static_cast<size_t>(h)]);
      for (int64_t j = first; j <= i; ++j) {
        const double weight = weights[static_cast<size_t>(j - first)] / sum;
        for (int64_t d = 0; d < spec.v_head_dim; ++d) result[i][h][d] += weight * value[j][kv][d];
      }
    }
  }
  return out;
}

TEST(CausalAttention, IsTheDefinitionForEveryWindowAndChunking) {
  const int64_t num_tokens = 37;
  AttentionSpec spec;
  spec.num_q_heads = 6;
  spec.num_kv_heads = 2;
  spec.head_dim = spec.v_head_dim = 16;
  spec.scale = 0.3;
  const at::Tensor q = at::randn({num_tokens, 6, 16}), k = at::randn({num_tokens, 2, 16});
  const at::Tensor v = at::randn({num_tokens, 2, 16});
  for (const int64_t window : {0, 1, 2, 7, 36, 37, 38, 1000}) {
    spec.window = window == 0 ? std::nullopt : std::optional(window);
    const at::Tensor expected = Definition(spec, q, k, v);
    for (const AttentionChunking chunking :
         {AttentionChunking{}, {1, 0}, {5, 0}, {7, 36}, {37, 0}, {512, 0}}) {
      at::Tensor out = at::empty({num_tokens, 6, 16});
      CausalAttention(spec, q, k, v, chunking, out);
      EXPECT_LT(RelativeError(out, expected), 1e-6)
          << "window " << window << ", chunk " << chunking.query_chunk;
    }
  }
}

TEST(CausalAttention, IsTheDefinitionWithSoftCapsAndSinks) {
  const int64_t num_tokens = 37;
  AttentionSpec spec;
  spec.num_q_heads = 6;
  spec.num_kv_heads = 2;
  spec.head_dim = 16;
  spec.v_head_dim = 12;
  spec.scale = 0.3;
  const at::Tensor q = at::randn({num_tokens, 6, 16}), k = at::randn({num_tokens, 2, 16});
  const at::Tensor v = at::randn({num_tokens, 2, 12});
  for (const double softcap : {0.0, 1.5}) {
    for (const bool sinks : {false, true}) {
      for (const int64_t window : {0, 7}) {
        spec.softcap = softcap;
        spec.sinks = sinks ? "sinks" : "";
        spec.sink_logits = {};
        if (sinks) spec.sink_logits = {0.5F, -1, 2, 0, 1, 3};
        spec.window = window == 0 ? std::nullopt : std::optional(window);
        const at::Tensor expected = Definition(spec, q, k, v);
        for (const AttentionChunking chunking : {AttentionChunking{}, {5, 0}}) {
          at::Tensor out = at::empty({num_tokens, 6, 12});
          CausalAttention(spec, q, k, v, chunking, out);
          EXPECT_LT(RelativeError(out, expected), 1e-6)
              << softcap << " " << sinks << " " << window << " " << chunking.query_chunk;
        }
      }
    }
  }
}

TEST(CausalAttention, OneHeadOneToken) {
  AttentionSpec spec;
  spec.num_q_heads = spec.num_kv_heads = 1;
  spec.head_dim = spec.v_head_dim = 8;
  spec.scale = 1;
  const at::Tensor v = at::randn({1, 1, 8});
  at::Tensor out = at::empty({1, 1, 8});
  CausalAttention(spec, at::randn({1, 1, 8}), at::randn({1, 1, 8}), v, {}, out);
  EXPECT_TRUE(out.equal(v));
}

}  // namespace
}  // namespace oscar
