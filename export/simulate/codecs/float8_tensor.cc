// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/float8_tensor.h"

#include <ATen/ATen.h>

namespace oscar {

at::Tensor Float8RoundTrip(const at::Tensor& rows, const at::Tensor& scales, Float8Type type) {
  const double max = Float8Max(type);
  const at::ScalarType stored = type == Float8Type::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
  return rows.div(scales).clamp_(-max, max).to(stored).to(rows.scalar_type()).mul_(scales);
}

}  // namespace oscar
