// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The round trips of KVQuant (linalg/nonuniform_codec.h) for tensors on any device. They do the
// same operations in the same order, so values equal the scalar codec's bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/nonuniform_codec.h"

namespace oscar {

// The range of values to be quantized. QuantileRange takes its ends from quantiles of `values`
// along `dim`, which stays with size 1. Quantiles are interpolated as in linalg/quantile.h.
struct TensorRange {
  at::Tensor low, high;
};
TensorRange QuantileRange(const at::Tensor& values, double kept, int64_t dim);

// Maps `range` to [-1, 1]: returns (y - middle of the range) / half of its width.
at::Tensor Normalized(const at::Tensor& y, const TensorRange& range);

// Returns the level nearest to each u or, if `read_back`, the value that is read back for that
// level.
at::Tensor NearestLevels(const at::Tensor& u, const NonuniformFormat& format, bool read_back);

// `y`: [tokens, channels] float32 or float64. `range`: per channel [1, channels], the same type.
at::Tensor RoundTripChannels(const at::Tensor& y, const TensorRange& range,
                             const NonuniformFormat& format, bool keep_outliers);

// Gives every token its own range, from which outliers are excluded. kept = 1: no outliers.
at::Tensor RoundTripTokens(const at::Tensor& y, double kept, const NonuniformFormat& format);

}  // namespace oscar
