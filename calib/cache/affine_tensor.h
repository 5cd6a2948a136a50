// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine round trip of linalg/affine_group.h (family A1) on tensors of any device: the same
// operations in the same order, so its values equal the scalar codec's bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "calib/cache_side.h"

namespace oscar {

// What is read of quantized rows. `rows` [..., dim] float32 or float64, contiguous, already
// rotated; `thresholds` [..., 1 or dim] of the same type clamp a row's values first, an undefined
// tensor clips nothing; format.quant_group_size divides dim. Float64 rounds what is stored in 16
// bits and nothing else.
at::Tensor AffineRoundTrip(const at::Tensor& rows, const at::Tensor& thresholds,
                           const AffineFormat& format);
// Differentiable: a code's gradient is that of the value it rounds. Scales of the range, float32.
at::Tensor AffineStraightThrough(const at::Tensor& rows, const at::Tensor& thresholds,
                                 const AffineFormat& format);

// With error feedback (linalg/error_feedback.h). `factor` [num_kv_heads, dim, dim] for rows [...,
// num_kv_heads, tokens, dim], or [1, dim, dim] for all of them; of their type and device.
at::Tensor AffineRoundTripWithFeedback(const at::Tensor& rows, const at::Tensor& thresholds,
                                       const AffineFormat& format, const at::Tensor& factor);

// Percentile clip threshold of each row (exact sort variant): [..., 1]. `sorted` is |rows| sorted
// ascending along the last dim. Undefined for a ratio that clips nothing (<= 0).
at::Tensor ClipThresholds(const at::Tensor& sorted, double ratio);
at::Tensor SortedMagnitudes(const at::Tensor& rows);  // |rows|, so sorted
// The same where heads have ratios of their own: [..., num_kv_heads, tokens, 1].
at::Tensor HeadThresholds(const at::Tensor& sorted, std::span<const double> clip);
at::Tensor ThresholdsOfRows(const at::Tensor& rows, std::span<const double> clip);  // not sorted
at::Tensor Clamped(const at::Tensor& rows, const at::Tensor& thresholds);           // to [-t, t]

// What is read of turned `rows` [..., num_kv_heads, tokens, dim]; `sorted`: their magnitudes, where
// they are known; `feedback` [num_kv_heads or 1, dim, dim] on their device: factors of error
// feedback, where rows are written with it.
at::Tensor QuantizedRows(const at::Tensor& rows, const AffineQuantizer& quantizer,
                         const at::Tensor& sorted = {}, bool straight_through = false,
                         const at::Tensor& feedback = {});

}  // namespace oscar
