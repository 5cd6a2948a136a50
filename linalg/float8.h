// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The two 8-bit floats of KV caches (OCP 8-bit floating point). With a scale s, stored =
// cast(clamp(x / s, -max, max)) and x^ = stored * s; ties are rounded to even. Trap: E4M3 is the FN
// flavour (bias 7, largest number 448, no infinity), not the fnuz one (largest number 240).
#pragma once

namespace oscar {

enum class Float8Type { kE4M3, kE5M2 };

constexpr float Float8Max(Float8Type type) { return type == Float8Type::kE4M3 ? 448.F : 57344.F; }

// Returns the scale that maps the largest magnitude in the calibration rows to the type's largest
// number; 1 if all values are zero.
inline float Float8Scale(float absmax, Float8Type type) {
  const float scale = absmax / Float8Max(type);
  return scale > 0 ? scale : 1.F;
}

}  // namespace oscar
