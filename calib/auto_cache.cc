// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See auto_cache.h.
#include "calib/auto_cache.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "calib/affine_tensor.h"
#include "calib/bf16_arithmetic.h"
#include "linalg/check.h"

namespace oscar {

at::Tensor AutoTensor(const std::vector<double>& values, int64_t rows, int64_t columns,
                      const at::Tensor& like) {
  const int64_t n = std::ssize(values) / (rows * columns);
  OSCAR_CHECK_EQ(n * rows * columns, std::ssize(values));
  const at::Tensor host = at::empty({n, rows, columns}, at::kFloat);
  std::transform(values.begin(), values.end(), host.mutable_data_ptr<float>(),
                 [](double value) { return static_cast<float>(value); });
  return host.to(like.device());
}

at::Tensor AtOffset(const at::Tensor& rows, const RopeSpec& rope, int64_t offset) {
  if (offset == 0) return rows;
  const std::vector<double> frequencies = InverseFrequencies(rope);
  const at::Tensor angle = at::tensor(frequencies, at::kDouble).mul_(static_cast<double>(offset));
  const at::Tensor cos = angle.cos().to(rows.device(), at::kFloat),
                   sin = angle.sin().to(rows.device(), at::kFloat);
  at::Tensor turned = rows.to(at::kFloat).clone();
  const int64_t half = rope.rotary_dim / 2;
  const at::Tensor first = rows.narrow(-1, 0, half).to(at::kFloat),
                   second = rows.narrow(-1, half, half).to(at::kFloat);
  turned.narrow(-1, 0, half).copy_(first.mul(cos).sub_(second.mul(sin)));
  turned.narrow(-1, half, half).copy_(second.mul(cos).add_(first.mul(sin)));
  return turned;
}

at::Tensor AutoKeys(const AutoSide& side, const at::Tensor& keys) {
  at::Tensor k = RoundedToBf16(keys).permute({1, 0, 2}).contiguous();
  if (!side.pair_scale.empty())  // what a folded checkpoint's projections and norms give
    k = RoundedToBf16(k.mul(AutoTensor(side.pair_scale, 1, side.dim, k)));
  if (!side.mean.empty()) k = k.sub(AutoTensor(side.mean, 1, side.dim, k));
  return TimesInBf16(k, AutoTensor(side.rotation, side.dim, side.dim, k));
}

at::Tensor AutoValues(const AutoSide& side, const at::Tensor& values) {
  const at::Tensor v = RoundedToBf16(values).permute({1, 0, 2}).contiguous();
  return TimesInBf16(v, AutoTensor(side.rotation, side.dim, side.dim, v));
}

at::Tensor AutoQueries(const AutoSide& side, const at::Tensor& queries, int64_t num_kv_heads) {
  const int64_t rows = queries.size(0);
  at::Tensor q = RoundedToBf16(queries)
                     .view({rows, num_kv_heads, -1, side.dim})
                     .permute({1, 2, 0, 3})
                     .reshape({num_kv_heads, -1, side.dim});
  if (!side.pair_scale.empty())
    q = RoundedToBf16(q.div(AutoTensor(side.pair_scale, 1, side.dim, q)));
  const std::vector<double>& rotation =
      side.query_rotation.empty() ? side.rotation : side.query_rotation;
  return TimesInBf16(q, AutoTensor(rotation, side.dim, side.dim, q))
      .view({num_kv_heads, -1, rows, side.dim})
      .permute({2, 0, 1, 3})
      .flatten(1, 2);
}

at::Tensor AutoValuesBack(const AutoSide& side, const at::Tensor& rotated) {
  const at::Tensor rotation = AutoTensor(side.rotation, side.dim, side.dim, rotated);
  return at::matmul(rotated, RoundedToBf16(rotation.transpose(1, 2)));
}

at::Tensor AutoQuantized(const at::Tensor& rows, const at::Tensor& sorted, int bits,
                         std::span<const double> clip, int64_t quant_group_size) {
  at::Tensor thresholds;
  if (clip.size() == 1) {
    thresholds = ClipThresholds(sorted, clip[0]);
  } else {
    OSCAR_CHECK_EQ(std::ssize(clip), rows.size(0));
    std::vector<at::Tensor> heads;
    for (int64_t head = 0; head < rows.size(0); ++head)
      heads.push_back(ClipThresholds(sorted[head], clip[static_cast<size_t>(head)]));
    thresholds = at::stack(heads);
  }
  const int64_t group = quant_group_size == 0 ? rows.size(-1) : quant_group_size;
  return AffineRoundTrip(rows, thresholds, group, bits);
}

at::Tensor SortedMagnitudes(const at::Tensor& rows) { return std::get<0>(rows.abs().sort(-1)); }

}  // namespace oscar
