// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the cache for one new token of each sequence. Trap: sequences of different lengths
// share a tensor. Positions beyond the end of a sequence hold old values, which must be masked.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "capture/model/run/gated_delta_net.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// One layer's cache for all sequences. Members are undefined if the layer does not use them.
struct DecodeCache {
  // [sequences, capacity, num_kv_heads, head_dim], or v_head_dim for v. Latent attention has only
  // k: [sequences, capacity, 1, rank + rope_dim].
  at::Tensor k, v;
  DeltaNetState delta_net;

  // Allocates keys and values for a layer with a cache.
  static DecodeCache Make(const AttentionSpec& spec, int64_t sequences, int64_t capacity,
                          const at::TensorOptions& options);
  // Bytes per sequence.
  static int64_t Bytes(const LayerSpec& layer, int64_t capacity, int64_t element);

  // Stores keys and values [n, heads, dim] of new tokens at `slots` [n] int64: sequence * capacity
  // + position. Stores only k if `new_v` is undefined.
  void Store(const at::Tensor& slots, const at::Tensor& new_k, const at::Tensor& new_v);
  // Drops every sequence except `kept` [m] int64.
  void Keep(const at::Tensor& kept);
};

// out[s, h] = sum_j softmax_j(cap(scale * q[s, h] . k[s, j, h / gqa_ratio])) v[s, j, h / gqa_ratio]
// for j < lengths[s] - first_key, within the layer's window. q [sequences, num_q_heads, dim]; k and
// v [sequences, keys, num_kv_heads, ..]: the cache from first_key on; lengths [sequences] int64:
// tokens of each sequence, including the new one; sinks [num_q_heads], if the layer has them.
// -> [sequences, num_q_heads, v dim]
at::Tensor AttendOneToken(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& lengths, int64_t first_key,
                          const at::Tensor& sinks);

}  // namespace oscar
