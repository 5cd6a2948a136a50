// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every line is one rounding; fusing or reordering them changes codes.
#include "calib/cache/affine_tensor.h"

#include <ATen/ATen.h>

#include <optional>

#include "linalg/affine_group.h"
#include "linalg/check.h"
#include "linalg/percentile_clip.h"

namespace oscar {

at::Tensor AffineRoundTrip(const at::Tensor& rows, const at::Tensor& thresholds,
                           int64_t quant_group_size, int bits) {
  OSCAR_CHECK(rows.scalar_type() == at::kFloat || rows.scalar_type() == at::kDouble);
  const int64_t dim = rows.size(-1);
  OSCAR_CHECK_EQ(dim % quant_group_size, 0);
  const int max_code = MaxCode(bits);
  at::Tensor x = rows;
  if (thresholds.defined()) x = at::minimum(at::maximum(x, -thresholds), thresholds);
  auto shape = rows.sizes().vec();
  shape.back() = dim / quant_group_size;
  shape.push_back(quant_group_size);
  x = x.reshape(shape);  // [..., groups, quant_group_size]
  const at::Tensor lo = x.amin(-1, true);
  const at::Tensor hi = x.amax(-1, true);
  // A tensor: a scalar divisor would become a product with its reciprocal.
  const at::Tensor divisor = at::full({}, max_code, x.options());
  const at::Tensor scale = (hi - lo).clamp_min(kMinAffineRange).div(divisor);
  const at::Tensor zero = lo.neg().div(scale);
  const at::Tensor codes = x.div(scale).add_(zero).add_(0.5f).trunc_().clamp_(0, max_code);
  return codes.sub_(zero).mul_(scale).reshape(rows.sizes());
}

at::Tensor ClipThresholds(const at::Tensor& sorted, double ratio) {
  const std::optional<int64_t> index = ClipIndex(ratio, sorted.size(-1));
  return index ? sorted.narrow(-1, *index, 1) : at::Tensor();
}

}  // namespace oscar
