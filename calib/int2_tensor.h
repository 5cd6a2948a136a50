// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The INT2 round trip of linalg/int2_codec.h on tensors of any device: the same float32 operations
// in the same order, so its values equal the scalar codec's bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

// Dequantized quantized rows. `rows` [..., dim] float32 contiguous, already rotated; `thresholds`
// [..., 1] float32 clamps each row to
// [-t, t] first, an undefined tensor clips nothing; `quant_group_size` values share a scale and
// divide dim.
at::Tensor Int2RoundTrip(const at::Tensor& rows, const at::Tensor& thresholds,
                         int64_t quant_group_size);

// Percentile clip threshold of each row (exact sort variant): [..., 1]. `sorted` is |rows| sorted
// ascending along the last dim. Undefined for a ratio that clips nothing (<= 0).
at::Tensor ClipThresholds(const at::Tensor& sorted, double ratio);

}  // namespace oscar
