// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations on pages and windows by tensor operations, on any device, where there is no kernel.
#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include "export/torch/view_tensors.h"

namespace oscar {
namespace {

// Returns the keys (side 0) or values (1) of all windows: [windows, heads, slots, dim].
at::Tensor WindowsOf(const ViewTensors& view, int side) {
  const int64_t slots = view.shape.window_slots(), k_dim = view.shape.format.k.dim,
                dim = side == 0 ? k_dim : view.shape.format.v.dim, from = side * slots * k_dim;
  return view.windows.slice(2, from, from + slots * dim).unflatten(2, {slots, dim});
}

// The window slots [requests, count] of the positions from `first` [requests] on, and whether a
// position belongs to the recent ring.
struct RingPlaces {
  at::Tensor slot, in_ring;
};
RingPlaces PlacesInRing(const ViewTensors& view, const at::Tensor& first, int64_t count) {
  const int64_t sink = view.shape.sink_tokens;
  const at::Tensor token = first.to(at::kLong).unsqueeze(1) +
                           at::arange(count, first.options().dtype(at::kLong)).sub_(sink);
  return {token.remainder(view.shape.recent_slots).add_(sink), token.ge(0)};
}

}  // namespace

at::Tensor RingBefore(const ViewTensors& view, int side, int64_t max_rows) {
  const int64_t slots = view.shape.recent_slots;
  const RingPlaces places = PlacesInRing(view, view.state[2].sub(slots), slots);
  const at::Tensor windows = WindowsOf(view, side).index_select(0, view.window_of_request);
  const at::Tensor index =
      places.slot.view({-1, 1, slots, 1}).expand({-1, windows.size(1), -1, windows.size(3)});
  const at::Tensor room =
      at::zeros({windows.size(0), windows.size(1), max_rows, windows.size(3)}, windows.options());
  return at::cat({windows.gather(2, index), room}, 2);
}

void AddToTail(const ViewTensors& view, const at::Tensor& row_begin, const at::Tensor& rows,
               const at::Tensor& tail) {
  const at::Tensor row = at::arange(rows.size(0), row_begin.options());
  const at::Tensor request =
      at::searchsorted(row_begin, row, /*out_int32=*/false, /*right=*/true).sub_(1);
  const at::Tensor slot =
      row.sub(row_begin.index_select(0, request)).add_(view.shape.recent_slots).to(at::kLong);
  at::Tensor(tail).index_put_({request, at::indexing::Slice(), slot}, rows);
}

void KeepNewest(const ViewTensors& view, int side, const at::Tensor& tail) {
  const int64_t slots = view.shape.recent_slots;
  const at::Tensor first = view.state[0].sub(slots);
  const RingPlaces places = PlacesInRing(view, first, slots);
  const auto over_rows = [&](const at::Tensor& t) {
    return t.view({-1, 1, slots, 1}).expand({-1, tail.size(1), -1, tail.size(3)});
  };
  const at::Tensor from = first.sub(view.state[2]).add(slots).to(at::kLong).unsqueeze(1) +
                          at::arange(slots, first.options().dtype(at::kLong));
  at::Tensor windows = WindowsOf(view, side).index_select(0, view.window_of_request);
  const at::Tensor at_slot = over_rows(places.slot);
  const at::Tensor rows = at::where(over_rows(places.in_ring), tail.gather(2, over_rows(from)),
                                    windows.gather(2, at_slot));
  windows.scatter_(2, at_slot, rows);
  WindowsOf(view, side).index_copy_(0, view.window_of_request.to(at::kLong), windows);
}

}  // namespace oscar
