// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a stream of the layer loop whose attention reads a simulated cache. An observer calls this
// in LayerObserver::Attend.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/layer_loop.h"
#include "export/simulate/cache_method.h"
#include "export/validate/mixed_attention.h"

namespace oscar {

// Appends to rows of latent attention their positional part, which no cache quantizes. Returns
// other rows unchanged.
at::Tensor WithPositionOf(const at::Tensor& rows, const at::Tensor& position);

// A sequence's rows as read by a stream's attention. All except `stored` are in the compute dtype.
struct AttendedRows {
  at::Tensor q;       // [tokens, num_q_heads, dim], with q_pe for latent attention
  at::Tensor k, v;    // [tokens, num_kv_heads, dim], the exact rows of the cache
  at::Tensor k_pe;    // for latent attention
  CacheSides stored;  // [tokens, num_kv_heads, dim]
};

// Computes view.attn_out. `rows`: what `cache` stored of view.k and view.v.
AttendedRows AttendCached(const AttentionView& view, const LayerCache& cache,
                          const CachedRows& rows, MixedMasks& masks);

}  // namespace oscar
