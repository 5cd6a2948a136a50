// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>

namespace oscar {
namespace {

// [end - begin, end - first_key] bool, true where query begin + i sees key first_key + j.
at::Tensor Visible(int64_t begin, int64_t end, int64_t first_key, int64_t window,
                   at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor queries = at::arange(begin, end, options).unsqueeze(1);
  const at::Tensor keys = at::arange(first_key, end, options).unsqueeze(0);
  return keys.le(queries).logical_and_(keys.gt(queries.sub(window)));
}

}  // namespace

at::Tensor HeadsFirst(const at::Tensor& x, const AttentionSpec& spec) {
  return x.view({x.size(0), spec.num_kv_heads, -1, x.size(2)})
      .permute({1, 2, 0, 3})
      .expand({-1, spec.gqa_ratio(), -1, -1});
}

void CausalAttention(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const AttentionChunking& chunking, at::Tensor& out) {
  const int64_t num_tokens = q.size(0);
  const int64_t window = std::min(spec.window.value_or(num_tokens), num_tokens);
  const at::Tensor queries = HeadsFirst(q, spec), keys = HeadsFirst(k, spec),
                   values = HeadsFirst(v, spec);
  const at::Tensor result = HeadsFirst(out, spec);
  if (window == num_tokens && num_tokens <= chunking.whole_attention) {
    result.copy_(at::scaled_dot_product_attention(queries, keys, values, {}, 0.0,
                                                  /*is_causal=*/true, spec.scale));
    return;
  }
  for (int64_t begin = 0; begin < num_tokens; begin += chunking.query_chunk) {
    const int64_t end = std::min(begin + chunking.query_chunk, num_tokens);
    const int64_t first_key = std::max<int64_t>(0, begin - window + 1);
    const at::Tensor mask = Visible(begin, end, first_key, window, q.device());
    result.slice(2, begin, end)
        .copy_(at::scaled_dot_product_attention(
            queries.slice(2, begin, end), keys.slice(2, first_key, end),
            values.slice(2, first_key, end), mask, 0.0, /*is_causal=*/false, spec.scale));
  }
}

}  // namespace oscar
