// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/stored_values.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "linalg/base/check.h"

namespace oscar {

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const int exponent = half >> 10 & 0x1F;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13);
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -24)
                              : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

float LoadFloat(DType dtype, const std::byte* at) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  OSCAR_CHECK(dtype == DType::kF16 || dtype == DType::kBF16);
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  if (dtype == DType::kF16) return HalfToFloat(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace oscar
