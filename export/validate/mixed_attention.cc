// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See mixed_attention.h. A chunk of queries attends to the concatenation of the stored keys and of
// the few keys that some query of the chunk sees exactly (the sinks and a band), under a mask.
#include "export/validate/mixed_attention.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace oscar {
namespace {

constexpr int64_t kQueryChunk = 512;

}  // namespace

void MixedAttention(const AttentionSpec& spec, const CacheWindows& windows, const at::Tensor& q,
                    const at::Tensor& k, const at::Tensor& v, const at::Tensor& k_stored,
                    const at::Tensor& v_stored, at::Tensor& out) {
  const int64_t tokens = q.size(0);
  if (windows.sink == 0 && windows.recent == 0) {
    CausalAttention(spec, q, k_stored, v_stored, {}, out);
    return;
  }
  const int64_t reach = spec.window.value_or(tokens);  // keys a query sees
  const auto index = at::TensorOptions().dtype(at::kLong).device(q.device());
  const at::Tensor queries = HeadsFirst(q, spec), result = HeadsFirst(out, spec);
  for (int64_t begin = 0; begin < tokens; begin += kQueryChunk) {
    const int64_t end = std::min(begin + kQueryChunk, tokens);
    const int64_t first = std::max<int64_t>(0, begin - reach + 1);
    // Exact keys: the sinks that are in reach, then the band of the chunk's recent windows.
    const int64_t sink_end = std::clamp<int64_t>(windows.sink, first, end);
    const int64_t band = std::clamp<int64_t>(begin - windows.recent + 1, sink_end, end);
    const auto keys_of = [&](const at::Tensor& stored, const at::Tensor& exact) {
      return at::cat({stored.slice(0, first, end), exact.slice(0, first, sink_end),
                      exact.slice(0, band, end)});
    };
    const at::Tensor positions =
        at::cat({at::arange(first, end, index), at::arange(first, sink_end, index),
                 at::arange(band, end, index)})
            .unsqueeze(0);
    at::Tensor is_stored = at::zeros({1, positions.size(1)}, index.dtype(at::kBool));
    is_stored.narrow(1, 0, end - first).fill_(true);
    const at::Tensor age = at::arange(begin, end, index).unsqueeze(1) - positions;
    const at::Tensor exact = age.lt(windows.recent).logical_or_(positions.lt(windows.sink));
    const at::Tensor mask = exact.ne(is_stored).logical_and_(age.ge(0)).logical_and_(age.lt(reach));
    result.slice(2, begin, end)
        .copy_(at::scaled_dot_product_attention(queries.slice(2, begin, end),
                                                HeadsFirst(keys_of(k_stored, k), spec),
                                                HeadsFirst(keys_of(v_stored, v), spec), mask, 0.0,
                                                /*is_causal=*/false, spec.scale));
  }
}

}  // namespace oscar
