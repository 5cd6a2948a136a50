// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the rows that vLLM's OSCAR cache holds (vLLM pull request 46774): a scale and
// a minimum in half precision per row, rounded before anything is quantized with them:
//
//   scale = half(max((max - min) / 3, 1e-8))      min = half(min x)
//   q = clamp(trunc((x - min) / scale + 0.5), 0, 3)          x^ = q * scale + min
//
// 1e-8 is zero in half precision, so a row of one value has scale 0: its codes are 0 and all
// of it reads back as the rounded minimum. Compiled with -ffp-contract=off: one rounding per
// operation.
#pragma once

#include <cstdint>
#include <span>

namespace oscar {

struct HalfOffset {
  float scale = 0, min = 0;  // half-precision numbers
};

// The runtime's clip threshold: torch.quantile(|row|, ratio), which interpolates between the order
// statistics around ratio * (dim - 1). Infinity for ratio <= 0. Differs from the threshold of
// percentile_clip.h. Throws NumericalError for NaN or Inf.
float ClipThresholdInterpolated(std::span<const float> row, double ratio);

// Quantizes a row x [dim], rotated and clipped before. Throws NumericalError for NaN or Inf.
HalfOffset EncodeHalfOffsetRow(std::span<const float> x, std::span<uint8_t> codes);
void DecodeHalfOffsetRow(std::span<const uint8_t> codes, const HalfOffset& group,
                         std::span<float> y);

}  // namespace oscar
