// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes the attention of a stream that reads a simulated cache, for observers of the layer loop
// (LayerObserver::Attend). A stream is the hidden states of one arm.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/layer_loop.h"
#include "export/simulate/cache_method.h"
#include "export/validate/mixed_attention.h"

namespace oscar {

// Appends the positional part to rows of latent attention; caches do not quantize that part.
// Returns other rows unchanged.
at::Tensor WithPositionOf(const at::Tensor& rows, const at::Tensor& position);

// The rows of a sequence that a stream's attention reads. All except `stored` are in the compute
// dtype.
struct AttendedRows {
  at::Tensor q;       // [tokens, num_q_heads, dim], with q_pe for latent attention
  at::Tensor k, v;    // [tokens, num_kv_heads, dim], the exact rows of the cache
  at::Tensor k_pe;    // for latent attention
  CacheSides stored;  // [tokens, num_kv_heads, dim]
};

// Writes the attention output into view.attn_out. `rows` is what `cache` stored of view.k and
// view.v.
AttendedRows AttendCached(const AttentionView& view, const LayerCache& cache,
                          const CachedRows& rows, MixedMasks& masks);

}  // namespace oscar
