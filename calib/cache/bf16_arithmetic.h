// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Products as a bf16 kernel computes them: factors rounded to bf16, sums in float32, the result
// rounded again. Everything is in float32 tensors, so that a CPU gives the same results as a GPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

at::Tensor RoundedToBf16(const at::Tensor& x);  // stays float32

// Returns rows * matrix in float32: both factors are rounded to bf16 first, and the product after.
at::Tensor TimesInBf16(const at::Tensor& rows, const at::Tensor& matrix);

}  // namespace oscar
