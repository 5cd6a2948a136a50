// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/straight_through.h"

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "linalg/affine_group.h"
#include "linalg/check.h"
#include "linalg/percentile_clip.h"

namespace oscar {
namespace {

// `values` [..., n] of which one threshold is taken: clamped to it.
at::Tensor Clipped(const at::Tensor& values, double ratio) {
  const std::optional<int64_t> index = ClipIndex(ratio, values.size(-1));
  if (!index) return values;
  const at::Tensor threshold =
      std::get<0>(values.detach().abs().kthvalue(*index + 1, -1, /*keepdim=*/true));
  return at::minimum(at::maximum(values, -threshold), threshold);
}

}  // namespace

at::Tensor StraightThroughRoundTrip(const at::Tensor& rows, const RefinedQuantizer& quantizer) {
  if (!quantizer.head_clip.empty()) {
    OSCAR_CHECK_EQ(std::ssize(quantizer.head_clip), rows.size(0));
    std::vector<at::Tensor> heads;
    for (int64_t head = 0; head < rows.size(0); ++head) {
      RefinedQuantizer own = quantizer;
      own.head_clip = {};
      own.clip_ratio = quantizer.head_clip[static_cast<size_t>(head)];
      heads.push_back(StraightThroughRoundTrip(rows[head], own));
    }
    return at::stack(heads);
  }
  if (quantizer.bits == 0) return rows;
  const int64_t dim = rows.size(-1);
  const int64_t group = quantizer.quant_group_size == 0 ? dim : quantizer.quant_group_size;
  OSCAR_CHECK_EQ(dim % group, 0);
  const bool clip_groups = quantizer.clip_groups && group < dim;
  auto shape = rows.sizes().vec();
  shape.back() = dim / group;
  shape.push_back(group);
  at::Tensor x = clip_groups ? rows : Clipped(rows, quantizer.clip_ratio);
  x = x.reshape(shape);
  if (clip_groups) x = Clipped(x, quantizer.clip_ratio);
  const int max_code = MaxCode(quantizer.bits);
  const at::Tensor lo = x.amin(-1, true), hi = x.amax(-1, true);
  const at::Tensor scale = (hi - lo).clamp_min(kMinAffineRange).div(max_code);
  const at::Tensor zero = lo.neg().div(scale);
  const at::Tensor t = x.div(scale).add(zero);
  const at::Tensor codes = t.detach().add(0.5).trunc_().clamp_(0, max_code);
  return (t + (codes - t.detach()) - zero).mul(scale).reshape(rows.sizes());
}

}  // namespace oscar
