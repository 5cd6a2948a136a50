// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A stream of the layer loop whose attention reads a simulated cache; an observer calls this in
// LayerObserver::Attend.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/layer_loop.h"
#include "export/simulate/cache_method.h"
#include "export/validate/mixed_attention.h"

namespace oscar {

// Appends to rows of latent attention their part with position, which no cache quantizes; returns
// other rows unchanged.
at::Tensor WithPositionOf(const at::Tensor& rows, const at::Tensor& position);

// A sequence's rows as a stream's attention read them; all but `stored` in the compute dtype.
struct AttendedRows {
  at::Tensor q;       // [tokens, num_q_heads, dim], of latent attention with q_pe
  at::Tensor k, v;    // [tokens, num_kv_heads, dim], exact as the cache holds them
  at::Tensor k_pe;    // of latent attention
  CacheSides stored;  // [tokens, num_kv_heads, dim]
};

// Fills view.attn_out. `rows`: what `cache` stored of view.k and view.v.
AttendedRows AttendCached(const AttentionView& view, const LayerCache& cache,
                          const CachedRows& rows, MixedMasks& masks);

}  // namespace oscar
