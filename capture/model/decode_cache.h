// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of one new token of each of several sequences over what a cache holds of them. Trap:
// sequences have different lengths in one tensor; what lies beyond a sequence's length is whatever
// was there before and must not be seen.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "capture/model/gated_delta_net.h"
#include "capture/model/model_spec.h"

namespace oscar {

// What one layer keeps of all sequences. Undefined: not of this kind of layer.
struct DecodeCache {
  // [sequences, capacity, num_kv_heads, head_dim] and v_head_dim; of latent attention k alone,
  // [sequences, capacity, 1, rank + rope_dim].
  at::Tensor k, v;
  DeltaNetState delta_net;

  // Memory for the keys and values of a layer with a cache.
  static DecodeCache Make(const AttentionSpec& spec, int64_t sequences, int64_t capacity,
                          const at::TensorOptions& options);
  // Bytes of a sequence.
  static int64_t Bytes(const LayerSpec& layer, int64_t capacity, int64_t element);

  // New tokens' keys and values [n, heads, dim] at `slots` [n] int64, sequence * capacity +
  // position; `new_v` undefined: k alone.
  void Store(const at::Tensor& slots, const at::Tensor& new_k, const at::Tensor& new_v);
  // Leaves the sequences `kept` [m] int64.
  void Keep(const at::Tensor& kept);
};

// out[s, h] = sum_j softmax_j(cap(scale * q[s, h] . k[s, j, h / gqa_ratio])) v[s, j, ..], j <
// lengths[s] - first_key, within the layer's window.
// q [sequences, num_q_heads, dim], k and v [sequences, keys, num_kv_heads, ..]: the cache from
// first_key on; lengths [sequences] int64: tokens of each, the new one included; sinks as for
// CausalAttention.  // -> [sequences, num_q_heads, v dim]
at::Tensor AttendOneToken(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& lengths, int64_t first_key,
                          const at::Tensor& sinks);

}  // namespace oscar
