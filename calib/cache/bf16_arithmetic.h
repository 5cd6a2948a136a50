// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with the rounding of a bf16 kernel: factors are rounded to bf16, sums are in
// float32, and the result is rounded to bf16. All tensors are float32, so that a CPU gives the same
// results as a GPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

at::Tensor RoundedToBf16(const at::Tensor& x);  // stays float32

// Returns rows * matrix in float32: both factors are rounded to bf16 first, and the product after.
at::Tensor TimesInBf16(const at::Tensor& rows, const at::Tensor& matrix);

}  // namespace oscar
