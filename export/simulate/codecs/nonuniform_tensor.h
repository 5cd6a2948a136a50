// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVQuant's round trips of linalg/nonuniform_codec.h on tensors of any device: the same operations
// in the same order, so values equal the scalar codec's bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/nonuniform_codec.h"

namespace oscar {

// Quantiles of `values` along `dim`, which stays with size 1. They are interpolated as in
// linalg/quantile.h.
struct TensorRange {
  at::Tensor low, high;
};
TensorRange QuantileRange(const at::Tensor& values, double kept, int64_t dim);

// Returns (y - offset) / half of the range, which is in [-1, 1] for values within the range.
at::Tensor Normalized(const at::Tensor& y, const TensorRange& range);

// Returns the level nearest to each u. `read_back`: the format's values instead of its levels.
at::Tensor NearestLevels(const at::Tensor& u, const NonuniformFormat& format, bool read_back);

// `y`: [tokens, channels] float32 or float64. `range`: per channel [1, channels], the same type.
at::Tensor RoundTripChannels(const at::Tensor& y, const TensorRange& range,
                             const NonuniformFormat& format, bool keep_outliers);

// Uses a range per token that leaves out its outliers. kept = 1: no outliers.
at::Tensor RoundTripTokens(const at::Tensor& y, double kept, const NonuniformFormat& format);

}  // namespace oscar
