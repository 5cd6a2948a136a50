// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The types in which caches store scales, zeros and norms, as roundings of float32. 16-bit metadata
// is rounded even if a method is computed in float64. Float32 metadata is not rounded then, because
// float64 stands in for float32 when methods are compared. Trap: RoundTo maps values beyond a
// type's range to its largest number. A hardware cast would give infinity, and one infinite scale
// would turn a row into NaN.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace oscar {

enum class StoredFloat { kFloat32, kBFloat16, kFloat16 };

constexpr int StoredBits(StoredFloat type) { return type == StoredFloat::kFloat32 ? 32 : 16; }

inline constexpr float kMaxBFloat16 = 0x1.FEp127F;
inline constexpr float kMaxFloat16 = 65504;

// Rounds to nearest, ties to even, like __float2bfloat16_rn. x is finite; the result may be
// infinite.
inline float NearestBFloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

// NearestBFloat16, clamped to the type's range.
inline float RoundToBFloat16(float x) {
  return NearestBFloat16(std::clamp(x, -kMaxBFloat16, kMaxBFloat16));
}

// Adding and subtracting a number whose last place has the value of the result's last place makes
// the float32 adder round. This also holds for subnormal halves (multiples of 2^-24).
inline float RoundToFloat16(float x) {
  const float clamped = std::clamp(x, -kMaxFloat16, kMaxFloat16);
  const uint32_t bits = std::bit_cast<uint32_t>(clamped);
  const uint32_t sign = bits & 0x80000000U;
  const uint32_t exponent = std::max((bits >> 23) & 0xFFU, 127U - 14U);
  const float magnitude = std::bit_cast<float>(bits & 0x7FFFFFFFU);
  const float anchor = std::bit_cast<float>((exponent + 13U) << 23);
  return std::bit_cast<float>(std::bit_cast<uint32_t>((magnitude + anchor) - anchor) | sign);
}

inline float RoundTo(float x, StoredFloat type) {
  switch (type) {
    case StoredFloat::kFloat32:
      return x;
    case StoredFloat::kBFloat16:
      return RoundToBFloat16(x);
    case StoredFloat::kFloat16:
      return RoundToFloat16(x);
  }
  return std::numeric_limits<float>::quiet_NaN();
}
inline double RoundTo(double x, StoredFloat type) {
  return type == StoredFloat::kFloat32 ? x : RoundTo(static_cast<float>(x), type);
}

}  // namespace oscar
