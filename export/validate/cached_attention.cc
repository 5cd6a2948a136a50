// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/cached_attention.h"

#include <ATen/ATen.h>

#include "capture/model/run/latent_attention.h"

namespace oscar {

at::Tensor WithPositionOf(const at::Tensor& rows, const at::Tensor& position) {
  if (!rows.defined() || !position.defined()) return rows;
  return WithPosition(rows, position.to(rows.scalar_type()));
}

AttendedRows AttendCached(const AttentionView& view, const LayerCache& cache,
                          const CachedRows& rows, MixedMasks& masks) {
  const auto compute = [&](const at::Tensor& x) { return x.to(view.q.scalar_type()).contiguous(); };
  const auto exact = [&](const at::Tensor& own, const at::Tensor& as_it_came) {
    return own.defined() ? compute(own) : as_it_came;
  };
  const at::Tensor q = cache.queries ? compute(cache.queries(view.q)) : view.q;
  const AttendedRows read{.q = WithPositionOf(q, view.q_pe),
                          .k = exact(rows.exact.k, view.k),
                          .v = exact(rows.exact.v, view.v),
                          .k_pe = view.q_pe.defined() ? view.k_pe : at::Tensor(),
                          .stored = rows.quantized};
  at::Tensor out = view.attn_out;
  MixedAttention(view.layer.attention, {cache.k_exact, cache.v_exact}, read.q,
                 {WithPositionOf(read.k, read.k_pe), read.v,
                  WithPositionOf(compute(rows.quantized.k), read.k_pe), compute(rows.quantized.v)},
                 masks, out);
  return read;
}

}  // namespace oscar
