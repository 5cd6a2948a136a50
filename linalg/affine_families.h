// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The published uniform quantizers, as four families of one rule with one scale and one offset per
// group. lo and hi are the ends of the group's range after `clip_ratio` and `include_zero`; m = 2^b
// - 1; HE rounds halves to even, HU rounds halves up:
//
//        scale                        offset           code                        value
//   A1   max(hi - lo, 1e-8) / m       -lo / s (real)   clamp(HU(x / s + z), 0, m)  (q - z) s
//   A2   (hi - lo) / m                lo               clamp(HE((x - lo) / s))     q s + lo
//   A3   (hi - lo) / m                z = HE(-lo / s)  clamp(HE(x / s) + z)        (q - z) s
//   A4   (hi - lo) / m                -z s             clamp(HE(x / s + z))        q s + offset
//
// Codes are computed with the unrounded scale and offset, and decoded with the stored ones. If all
// values of a group are equal, the sources divide by zero. Here such values become exactly lo, with
// code 0. For groups of zeros, A3 and A4 take lo = -1 and hi = 1, as their sources do.
#pragma once

#include "linalg/stored_float.h"

namespace oscar {

enum class AffineFamily {
  kRealZero,     // A1: OSCAR, SAW-INT4; affine_group.h
  kMinOffset,    // A2: KIVI, Kitty, KVarN, vLLM's values
  kIntegerZero,  // A3: QuaRot, RotateKV
  kFusedZero,    // A4: OScaR
};

enum class CodeRounding { kHalfEven, kHalfUp };

struct AffineRule {
  AffineFamily family = AffineFamily::kRealZero;
  int bits = 2;               // 1 to 8
  float clip_ratio = 1;       // factor for lo and hi, not a percentile
  bool include_zero = false;  // lo <= 0 <= hi (QuaRot, per token)
  int divisor = 0;      // scale = (hi - lo) / divisor; 0: m (RotateKV uses b^2 - 1: 8 at 3 bits)
  float min_range = 0;  // lower bounds for hi - lo and for the scale; A1 uses its own
  float min_scale = 0;
  CodeRounding rounding = CodeRounding::kHalfEven;  // for A2; fixed in the others
  StoredFloat metadata = StoredFloat::kFloat32;     // type of scales and offsets
};

}  // namespace oscar
