// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the rows in vLLM's OSCAR cache (vLLM pull request 46774). Each row has a
// scale and a minimum in half precision, which are rounded before values are quantized with them:
//
//   scale = half(max((max - min) / 3, 1e-8))      min = half(min x)
//   q = clamp(trunc((x - min) / scale + 0.5), 0, 3)          x^ = q * scale + min
//
// 1e-8 is zero in half precision, so a row of equal values has scale 0 and codes 0, and reads back
// as the rounded minimum. Compiled with -ffp-contract=off: one rounding per operation.
#pragma once

#include <cstdint>
#include <span>

namespace oscar {

struct HalfOffset {
  float scale = 0, min = 0;  // half-precision numbers
};

// Returns the runtime's clip threshold: torch.quantile(|row|, ratio), which interpolates between
// the order statistics around ratio * (dim - 1). Returns infinity for ratio <= 0. Differs from the
// threshold of percentile_clip.h. Throws NumericalError for NaN or Inf.
float ClipThresholdInterpolated(std::span<const float> row, double ratio);

// Quantizes a row x [dim], which is already rotated and clipped. Throws NumericalError for NaN or
// Inf.
HalfOffset EncodeHalfOffsetRow(std::span<const float> x, std::span<uint8_t> codes);
void DecodeHalfOffsetRow(std::span<const uint8_t> codes, const HalfOffset& group,
                         std::span<float> y);

}  // namespace oscar
