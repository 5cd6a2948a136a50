// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Causal grouped-query attention of one sequence over its own keys, with an optional window, soft
// cap and sinks. Long or windowed sequences are processed in chunks of queries, because a mask for
// a whole long sequence would not fit into memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "capture/model/spec/model_spec.h"

namespace oscar {

struct AttentionChunking {
  int64_t query_chunk = 512;  // queries per call with an explicit mask
  // Sequences of up to this many tokens are processed in one call if there is no window. With flash
  // attention, longer sequences are too.
  int64_t whole_attention = 4096;
};

// [n, H, d] -> [num_kv_heads, gqa_ratio, n, d] without a copy. KV heads form the batch dimension. A
// head of k or v is repeated for its query heads with a stride of zero, which every attention
// kernel accepts.
at::Tensor HeadsFirst(const at::Tensor& x, const AttentionSpec& spec);

// Softmax attention over the keys that `visible` bool [n, T] selects; if undefined, causal
// attention. Tensors have the layout of HeadsFirst, in which all query heads of a KV head have the
// same values. On a CPU, values that are shorter than keys are padded. Otherwise no fused kernel
// would support them, and the other kernels hold the scores of all pairs of tokens in memory.
at::Tensor FusedAttention(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, const at::Tensor& visible, double scale);

// out[i, h] = sum_j softmax_j(cap(scale * q[i, h] . k[j, h / gqa_ratio])) v[j, h / gqa_ratio]
// for j = max(0, i-W+1) .. i. q [T, num_q_heads, head_dim], k [T, num_kv_heads, head_dim], v [T,
// num_kv_heads, v_head_dim] and out [T, num_q_heads, v_head_dim] are contiguous, on one device and
// of one dtype. `sinks` [num_q_heads], if the layer has them, add one logit without a value to each
// softmax; undefined: the sinks of the spec. Soft caps and sinks are computed in float32.
void CausalAttention(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const AttentionChunking& chunking, at::Tensor& out,
                     const at::Tensor& sinks = {});

// Bytes that ExplicitAttention needs in addition to its arguments.
int64_t ExplicitAttentionBytes(const AttentionSpec& spec, int64_t num_tokens);

// Attention for layers that no fused kernel supports: softmax in float32 over the keys that
// `visible` bool [n, T] selects, with soft cap and sinks.
// `queries` [num_kv_heads, gqa_ratio, n, head_dim], k [T, num_kv_heads, head_dim], v [T,
// num_kv_heads, v_head_dim] -> [num_kv_heads, gqa_ratio, n, v_head_dim]
at::Tensor ExplicitAttention(const AttentionSpec& spec, const at::Tensor& queries,
                             const at::Tensor& k, const at::Tensor& v, const at::Tensor& visible,
                             const at::Tensor& sinks);
// Whether a layer needs ExplicitAttention.
bool NeedsExplicitAttention(const AttentionSpec& spec);
// Returns the values of the layer's sinks, [num_q_heads] float32, or an undefined tensor if it has
// none. The values must have been read with the spec (AttentionSpec::sink_logits).
at::Tensor SinkLogits(const AttentionSpec& spec, at::Device device);

// Whether causal attention on these tensors uses a GPU's flash kernel, whose memory is linear in
// the number of tokens, not quadratic. q [T, num_q_heads, head_dim]; k and v as in CausalAttention.
bool TakesFlash(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                const at::Tensor& v);

// Applies c tanh(x / c), in place if no gradient is needed; does nothing if c is 0.
void SoftCap(double c, at::Tensor& logits);

}  // namespace oscar
