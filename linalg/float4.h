// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NVFP4: 4-bit floats E2M1 (0 .5 1 1.5 2 3 4 6 and their negatives; ties to even). Each run of 16
// values shares an 8-bit float E4M3 scale, and each tensor has one float32 scale g. E4M3() and
// E2M1() round and saturate:
//
//   s = E4M3(max|x| / 6 / g) g,   x^ = E2M1(x / s) s,   0 where s is 0
//
// Sources: NVFP4QTensor in NVIDIA/Model-Optimizer (modelopt/torch/quantization/qtensor), which
// calibrates g = max|x| / (6 * 448) over a whole tensor, and cvt_warp_fp16_to_fp4 in FlashInfer,
// which writes zeros where s is 0.
#pragma once

#include <cstdint>

#include "linalg/float8.h"

namespace oscar {

inline constexpr float kE2M1Max = 6;
inline constexpr int64_t kNvfp4Values = 16;  // values per E4M3 scale

// Returns the g that maps the largest magnitude in the calibration rows to the largest
// representable number; 1 if all values are zero.
inline float Nvfp4Scale(float absmax) { return Float8Scale(absmax / kE2M1Max, Float8Type::kE4M3); }

}  // namespace oscar
