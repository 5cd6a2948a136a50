// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine round trip of linalg/affine_group.h (family A1) on tensors of any device: the same
// operations in the same order, so its values equal the scalar codec's bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

// Dequantized quantized rows. `rows` [..., dim] float32 or float64, contiguous, already rotated;
// `thresholds` [..., 1] of the same type clamps each row to [-t, t] first, an undefined tensor
// clips nothing; `quant_group_size` values share a scale and divide dim; codes have `bits` bits.
at::Tensor AffineRoundTrip(const at::Tensor& rows, const at::Tensor& thresholds,
                           int64_t quant_group_size, int bits = 2);

// Percentile clip threshold of each row (exact sort variant): [..., 1]. `sorted` is |rows| sorted
// ascending along the last dim. Undefined for a ratio that clips nothing (<= 0).
at::Tensor ClipThresholds(const at::Tensor& sorted, double ratio);

}  // namespace oscar
