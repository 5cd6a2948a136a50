// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pages read by tensor operations: where no kernel dequantizes rows, on any device.
#include <ATen/ATen.h>

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
  const at::Tensor pairs = bytes.unflatten(-1, {groups, kTileTokens, 2});
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

}  // namespace oscar
