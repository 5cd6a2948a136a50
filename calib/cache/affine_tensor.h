// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine round trip of linalg/affine_group.h (family A1) for tensors on any device. It does the
// same operations in the same order, so its values equal the scalar codec's bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "calib/cache_side.h"

namespace oscar {

// Quantizes and dequantizes rows [..., dim] that are already rotated: contiguous, float32 or
// float64. Values are first clamped to `thresholds` [..., 1 or dim] of the same type; an undefined
// tensor clips nothing. format.quant_group_size divides dim. In float64, float32 metadata stays
// unrounded.
at::Tensor AffineRoundTrip(const at::Tensor& rows, const at::Tensor& thresholds,
                           const AffineFormat& format);
// A differentiable round trip whose gradient treats rounding as the identity (straight-through).
// Supports only float32 and scales from the range.
at::Tensor AffineStraightThrough(const at::Tensor& rows, const at::Tensor& thresholds,
                                 const AffineFormat& format);

// The round trip with error feedback (linalg/error_feedback.h). `factor` has the type and device of
// the rows. It is [num_kv_heads, dim, dim] for rows [..., num_kv_heads, tokens, dim], or [1, dim,
// dim] for all heads.
at::Tensor AffineRoundTripWithFeedback(const at::Tensor& rows, const at::Tensor& thresholds,
                                       const AffineFormat& format, const at::Tensor& factor);

// Returns the percentile clip threshold of each row (exact sort variant): [..., 1], or an undefined
// tensor if the ratio is <= 0 (no clipping). `sorted` is |rows| in ascending order along the last
// dim.
at::Tensor ClipThresholds(const at::Tensor& sorted, double ratio);
at::Tensor SortedMagnitudes(const at::Tensor& rows);  // |rows|, ascending
// ClipThresholds with one ratio per head. [..., num_kv_heads, tokens, 1]
at::Tensor HeadThresholds(const at::Tensor& sorted, std::span<const double> clip);
at::Tensor Clamped(const at::Tensor& rows, const at::Tensor& thresholds);  // to [-t, t]

// Quantizes and dequantizes rotated `rows` [..., num_kv_heads, tokens, dim]. `sorted` holds the
// sorted magnitudes of `rows`, if they are known. `feedback` [num_kv_heads or 1, dim, dim] holds
// the factors for error feedback, on the same device; undefined: no feedback.
at::Tensor QuantizedRows(const at::Tensor& rows, const AffineQuantizer& quantizer,
                         const at::Tensor& sorted = {}, bool straight_through = false,
                         const at::Tensor& feedback = {});

}  // namespace oscar
