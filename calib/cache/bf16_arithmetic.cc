// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/bf16_arithmetic.h"

#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "calib/cache/cache_kernels.h"

namespace oscar {

at::Tensor RoundedToBf16(const at::Tensor& x) {
  if (std::optional<at::Tensor> rounded = RoundedToBf16InOneKernel(x)) return *std::move(rounded);
  return x.to(at::kBFloat16).to(at::kFloat);
}

at::Tensor TimesInBf16(const at::Tensor& rows, const at::Tensor& matrix) {
  return RoundedToBf16(at::matmul(RoundedToBf16(rows), RoundedToBf16(matrix)));
}

}  // namespace oscar
