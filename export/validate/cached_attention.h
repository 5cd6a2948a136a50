// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A stream of the layer loop whose attention reads a simulated cache: what an observer does in
// LayerObserver::Attend.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/layer_loop.h"
#include "export/simulate/cache_method.h"
#include "export/validate/mixed_attention.h"

namespace oscar {

// Rows of latent attention with their part that has position, which no cache quantizes; as they are
// where there is none.
at::Tensor WithPositionOf(const at::Tensor& rows, const at::Tensor& position);

// What a stream's attention read of a sequence, in the compute dtype but for what is stored.
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
