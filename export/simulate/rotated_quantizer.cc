// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See rotated_quantizer.h.
#include "export/simulate/rotated_quantizer.h"

#include <ATen/ATen.h>

#include "calib/affine_tensor.h"

namespace oscar {

at::Tensor RoundTrip(const RotatedQuantizer& quantizer, const at::Tensor& rows) {
  const at::ScalarType dtype = rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor y = rows.permute({1, 0, 2}).to(dtype).contiguous();  // [num_kv_heads, tokens, dim]
  at::Tensor rotation;
  if (quantizer.rotation.defined()) {
    rotation = quantizer.rotation.to(rows.device(), dtype);
    y = at::matmul(y, rotation);
  }
  if (quantizer.bits > 0) {
    at::Tensor thresholds;
    if (quantizer.clip_ratio > 0)
      thresholds = ClipThresholds(std::get<0>(y.abs().sort(-1)), quantizer.clip_ratio);
    const int64_t group = quantizer.quant_group_size == 0 ? y.size(-1) : quantizer.quant_group_size;
    y = AffineRoundTrip(y, thresholds, group, quantizer.bits);
  }
  if (rotation.defined()) y = at::matmul(y, rotation.transpose(-1, -2));
  return y.permute({1, 0, 2}).contiguous();
}

}  // namespace oscar
