// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pages and windows by tensor operations, on any device: what no kernel does.
#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include <vector>

#include "export/torch/view_tensors.h"
#include "linalg/affine_group.h"     // MaxCode
#include "linalg/affine_metadata.h"  // ScaleSteps

namespace oscar {
namespace {

// Values of one plane, [..., 16 dim] in order of token and dim, of records [..., bytes].
at::Tensor PlaneOf(const at::Tensor& records, bool values, int dim, int bits, int offset) {
  std::vector<int64_t> byte, shift;
  for (int t = 0; t < kTileTokens; ++t) {
    for (int d = 0; d < dim; ++d) {
      const CodePlace place =
          PlaceOfCode(values ? CacheOrder::kValues : CacheOrder::kKeys, dim, bits, t, d);
      byte.push_back(offset + WordByte(PlaneWords(dim, bits), place.lane, place.word) +
                     place.bit / 8);
      shift.push_back(place.bit % 8);
    }
  }
  const auto there = [&](const std::vector<int64_t>& numbers, at::ScalarType type) {
    return at::tensor(numbers, at::kLong).to(records.device(), type);
  };
  return records.index_select(-1, there(byte, at::kLong))
      .bitwise_right_shift(there(shift, at::kByte))
      .bitwise_and((1 << bits) - 1);
}

// Scales and zeros [..., groups, 16, 2] float32.
at::Tensor MetadataOf(const at::Tensor& records, const PagedSide& side, MetadataType type,
                      int offset) {
  const int groups = GroupsPerRow(side);
  const at::Tensor bytes =
      records.slice(-1, offset, offset + MetadataBytes(side, type)).contiguous();
  const auto shaped = [&](const at::Tensor& t) {
    return t.unflatten(-1, {groups, kTileTokens, 2}).to(at::kFloat);
  };
  if (type == MetadataType::kFloat32) return shaped(bytes.view(at::kFloat));
  if (type == MetadataType::kBFloat16) return shaped(bytes.view(at::kBFloat16));
  const at::Tensor pairs = bytes.unflatten(-1, {kTileTokens / 2, groups, 2, 2})
                               .movedim(-4, -2)  // [groups, token / 8, token % 8, 2]
                               .flatten(-3, -2)
                               .contiguous();
  // A byte of scale is the middle one of a float16 without its sign.
  const at::Tensor scale =
      pairs.select(-1, 0).to(at::kShort).bitwise_left_shift(7).view(at::kHalf).to(at::kFloat);
  const at::Tensor steps = pairs.select(-1, 1).contiguous().view(at::kChar).to(at::kFloat);
  return at::stack({scale, steps.div(ScaleSteps(side.bits)).add(MaxCode(side.bits) / 2.0)}, -1);
}

}  // namespace

RowTensors StoredRowsByTensors(const ViewTensors& view, int request, int64_t begin, int64_t end) {
  const CacheFormat& format = view.shape.format;
  const int64_t page_tokens = format.page_tokens, first = begin / page_tokens,
                last = (end + page_tokens - 1) / page_tokens;
  const at::Tensor pages = view.page_table.select(0, request).slice(0, first, last).to(at::kLong);
  // [heads, pages, tiles, bytes]
  const at::Tensor records =
      view.pages.index_select(0, pages)
          .view({last - first, view.num_kv_heads(), page_tokens / kTileTokens, RecordBytes(format)})
          .transpose(0, 1);
  const auto side = [&](bool values) {
    const PagedSide& s = values ? format.v : format.k;
    const int codes_offset = values ? VCodesOffset(format) : KCodesOffset(format);
    at::Tensor codes = PlaneOf(records, values, s.dim, 2, codes_offset);
    if (s.bits > 2)
      codes = codes.add(
          PlaneOf(records, values, s.dim, s.bits - 2, codes_offset + PlaneBytes(s.dim, 2)), 4);
    const at::Tensor metadata =
        MetadataOf(records, s, format.metadata,
                   values ? VMetadataOffset(format) : KMetadataOffset(format))
            .transpose(-3, -2);  // [..., 16, groups, 2]
    const at::Tensor by_group =
        codes.to(at::kFloat).unflatten(-1, {kTileTokens, GroupsPerRow(s), s.quant_group_size});
    return by_group.sub(metadata.select(-1, 1).unsqueeze(-1))
        .mul(metadata.select(-1, 0).unsqueeze(-1))
        .reshape({view.num_kv_heads(), (last - first) * page_tokens, s.dim})
        .slice(1, begin - first * page_tokens, end - first * page_tokens);
  };
  return {side(false), side(true)};
}

namespace {

// A side of all windows: [windows, heads, slots, dim].
at::Tensor WindowsOf(const ViewTensors& view, int side) {
  const int64_t slots = view.shape.window_slots(), k_dim = view.shape.format.k.dim,
                dim = side == 0 ? k_dim : view.shape.format.v.dim, from = side * slots * k_dim;
  return view.windows.slice(2, from, from + slots * dim).unflatten(2, {slots, dim});
}

// Slots of the windows [requests, count] where positions from `first` [requests] on stand, and
// whether such a position is one of the ring's.
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

at::Tensor RingBefore(const ViewTensors& view, int side, int64_t tail_rows) {
  const int64_t slots = view.shape.recent_slots;
  const RingPlaces places = PlacesInRing(view, view.state[2].sub(slots), slots);
  const at::Tensor windows = WindowsOf(view, side).index_select(0, view.window_of_request);
  const at::Tensor index =
      places.slot.view({-1, 1, slots, 1}).expand({-1, windows.size(1), -1, windows.size(3)});
  const at::Tensor room =
      at::zeros({windows.size(0), windows.size(1), tail_rows, windows.size(3)}, windows.options());
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
