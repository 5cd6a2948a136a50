// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/scalar_float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oscar {
namespace {

struct Layout {
  int mantissa_bits, bias;
  uint8_t nan, max_code;
};

Layout LayoutOf(Float8Type type) {
  return type == Float8Type::kE4M3 ? Layout{3, 7, 0x7F, 0x7E} : Layout{2, 15, 0x7F, 0x7B};
}

}  // namespace

uint8_t EncodeFloat8(float x, Float8Type type) {
  const Layout layout = LayoutOf(type);
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80 : 0);
  if (std::isnan(x)) return sign | layout.nan;
  const float magnitude = std::min(std::abs(x), Float8Max(type));
  // Counts the units in the last place of the number's binade, or of the subnormals if it is
  // smaller. After rounding this is a whole number, to which the first code of the binade is added.
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), 1 - layout.bias) : 0;
  if (magnitude == 0) return sign;
  const float units = std::nearbyint(std::ldexp(magnitude, layout.mantissa_bits - exponent));
  const int binade = (exponent + layout.bias - 1) << layout.mantissa_bits;
  return sign | static_cast<uint8_t>(binade + static_cast<int>(units));
}

float DecodeFloat8(uint8_t code, Float8Type type) {
  const Layout layout = LayoutOf(type);
  const int magnitude = code & 0x7F;
  const float sign = (code & 0x80) != 0 ? -1.F : 1.F;
  if (magnitude > layout.max_code) {
    const bool infinite = type == Float8Type::kE5M2 && magnitude == layout.max_code + 1;
    return sign * (infinite ? std::numeric_limits<float>::infinity()
                            : std::numeric_limits<float>::quiet_NaN());
  }
  const int first = 1 << layout.mantissa_bits;  // implicit leading bit of a normal mantissa
  const int exponent = std::max(magnitude >> layout.mantissa_bits, 1);
  const int mantissa = magnitude < first ? magnitude : first + magnitude % first;
  return sign *
         std::ldexp(static_cast<float>(mantissa), exponent - layout.bias - layout.mantissa_bits);
}

float Float8RoundTrip(float x, float scale, Float8Type type) {
  return DecodeFloat8(EncodeFloat8(x / scale, type), type) * scale;
}

}  // namespace oscar
