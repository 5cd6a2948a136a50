// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a bf16 kernel makes of a product: factors rounded to bf16, sums in float32, the result
// rounded again. All of it in float32 tensors, so that a CPU computes what a GPU does.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

at::Tensor RoundedToBf16(const at::Tensor& x);  // to float32

// rows matrix, both rounded to bf16 before and the product after; float32.
at::Tensor TimesInBf16(const at::Tensor& rows, const at::Tensor& matrix);

}  // namespace oscar
