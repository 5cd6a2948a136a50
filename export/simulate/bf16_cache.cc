// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/bf16_cache.h"

#include <ATen/ATen.h>

#include "calib/cache/bf16_arithmetic.h"
#include "export/simulate/cache_method.h"

namespace oscar {
namespace {

// Returns [num_kv_heads or 1, dim, dim] float32, on the device of `like`; undefined for the
// identity.
at::Tensor Inverse(const RotatedQuantizer& quantizer, const at::Tensor& like) {
  if (quantizer.inverse.defined()) return quantizer.inverse.to(like.device());
  if (!quantizer.rotation.defined()) return {};
  return quantizer.rotation.to(like.device()).transpose(-1, -2);
}

Bf16Rows ThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& rows,
                      const at::Tensor& back) {
  const at::ScalarType dtype = ResultType(rows);
  at::Tensor y = rows.permute({1, 0, 2}).to(at::kFloat).contiguous();
  at::Tensor mean;
  if (quantizer.mean.defined()) {
    mean = quantizer.mean.to(rows.device()).unsqueeze(1);  // [num_kv_heads, 1, dim]
    y = y.sub(mean);
  }
  y = quantizer.rotation.defined() ? TimesInBf16(y, quantizer.rotation.to(rows.device()))
                                   : RoundedToBf16(y);
  const auto turned_back = [&](const at::Tensor& rotated) {
    at::Tensor x = rotated.to(dtype);
    if (back.defined()) x = at::matmul(x, back.to(dtype));
    if (mean.defined()) x = x.add(mean.to(dtype));
    return x.permute({1, 0, 2}).contiguous();
  };
  return {turned_back(ClippedAndQuantized(quantizer, y)), turned_back(y)};
}

}  // namespace

Bf16Rows Bf16KeysThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& keys) {
  return ThroughCache(quantizer, keys, Inverse(quantizer, keys));
}

Bf16Rows Bf16ValuesThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& values) {
  const at::Tensor inverse = Inverse(quantizer, values);
  return ThroughCache(quantizer, values, inverse.defined() ? RoundedToBf16(inverse) : inverse);
}

at::Tensor Bf16Queries(const RotatedQuantizer& keys, const at::Tensor& queries) {
  if (!keys.rotation.defined()) return RoundedToBf16(queries).to(ResultType(queries));
  const at::ScalarType dtype = ResultType(queries);
  const int64_t matrices = keys.rotation.size(0), rows = queries.size(0), dim = queries.size(-1);
  // [matrices, query heads per matrix * rows, dim]
  const at::Tensor grouped = queries.to(at::kFloat).permute({1, 0, 2}).reshape({matrices, -1, dim});
  const at::Tensor rotated = TimesInBf16(grouped, Inverse(keys, queries).transpose(-1, -2));
  const at::Tensor back = keys.rotation.to(queries.device(), dtype).transpose(-1, -2);
  return at::matmul(rotated.to(dtype), back).reshape({-1, rows, dim}).permute({1, 0, 2});
}

}  // namespace oscar
