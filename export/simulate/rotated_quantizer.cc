// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/rotated_quantizer.h"

#include <ATen/ATen.h>

#include "calib/cache/affine_tensor.h"
#include "capture/model/run/device.h"
#include "export/simulate/cache_method.h"  // ResultType

namespace oscar {

at::Tensor ClippedAndQuantized(const RotatedQuantizer& quantizer, const at::Tensor& rows) {
  if (!quantizer.codec) return QuantizedRows(rows, quantizer.codes, {}, false, quantizer.feedback);
  const double ratio = quantizer.codes.clip.at(0);
  if (ratio <= 0) return quantizer.codec(rows);
  return quantizer.codec(Clamped(rows, HeadThresholds(SortedMagnitudes(rows), {&ratio, 1})));
}

void GoTo(const at::Tensor& rows, RotatedQuantizer& quantizer) {
  for (at::Tensor* tensor :
       {&quantizer.rotation, &quantizer.inverse, &quantizer.mean, &quantizer.feedback}) {
    if (tensor->defined()) *tensor = SendTo(*tensor, rows.device());
  }
}

at::Tensor RoundTrip(const RotatedQuantizer& quantizer, const at::Tensor& rows) {
  const at::ScalarType dtype = ResultType(rows);
  const auto like_rows = [&](const at::Tensor& t) { return t.to(rows.device(), dtype); };
  at::Tensor y = rows.permute({1, 0, 2}).to(dtype).contiguous();  // [num_kv_heads, tokens, dim]
  if (quantizer.mean.defined()) y = y.sub(like_rows(quantizer.mean).unsqueeze(1));
  if (quantizer.rotation.defined()) y = at::matmul(y, like_rows(quantizer.rotation));
  y = ClippedAndQuantized(quantizer, y);
  if (quantizer.inverse.defined()) {
    y = at::matmul(y, like_rows(quantizer.inverse));
  } else if (quantizer.rotation.defined()) {
    y = at::matmul(y, like_rows(quantizer.rotation).transpose(-1, -2));
  }
  if (quantizer.mean.defined()) y = y.add(like_rows(quantizer.mean).unsqueeze(1));
  return y.permute({1, 0, 2}).contiguous();
}

}  // namespace oscar
