// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Family A1: b-bit codes with a real-valued zero, one scale and zero per group of neighbouring
// values:
//
//   scale = max(max - min, 1e-8) / (2^b - 1)      zero = -min / scale
//   q = clamp(trunc(x / scale + zero + 0.5), 0, 2^b - 1)        x^ = (q - zero) * scale
//
// Trap: one rounding per operation; include this only from units compiled with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace oscar {

inline constexpr float kMinAffineRange = 1e-8F;  // floor of max - min

constexpr int MaxCode(int bits) { return (1 << bits) - 1; }

template <typename T>
struct AffineGroup {
  T scale;
  T zero;
};

template <typename T>
AffineGroup<T> FitAffine(std::span<const T> group, int max_code) {
  const auto [min, max] = std::minmax_element(group.begin(), group.end());
  const T scale = std::max(*max - *min, static_cast<T>(kMinAffineRange)) / static_cast<T>(max_code);
  return {scale, -*min / scale};
}

// Clamps before the conversion, because a value far outside the range of codes may not fit into an
// int.
template <typename T>
uint8_t AffineCode(T x, const AffineGroup<T>& affine, int max_code) {
  const T t = std::trunc(x / affine.scale + affine.zero + T{0.5});
  return static_cast<uint8_t>(std::clamp(t, T{0}, static_cast<T>(max_code)));
}

template <typename T>
T AffineValue(uint8_t code, const AffineGroup<T>& affine) {
  return (static_cast<T>(code) - affine.zero) * affine.scale;
}

}  // namespace oscar
