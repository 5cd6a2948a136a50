// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The stored form of a group's scale and zero. As one byte each, they are stored as follows:
//
//   scale: 5 bits of exponent and 3 of fraction, the middle byte of a float16 without its sign
//   zero:  distance from the middle code, in units of 1 / ScaleSteps(bits) codes, -127 to 127
//
// So groups of 16 values need as many bits as groups of 64 with a float32 scale and zero. The zero
// fits into a byte if the group's range contains 0 (RangeOf). The stored scale differs by up to
// 1/16, so codes are computed with it and not with the unrounded one.
//
// Trap: one rounding per operation; include this only from units compiled with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"
#include "linalg/affine_group.h"
#include "linalg/stored_float.h"

namespace oscar {

inline constexpr int kMaxScaleSteps = 127;
constexpr int ScaleSteps(int bits) { return 1 << (7 - bits); }

inline constexpr float kMinByteScale = 0x1p-17F, kMaxByteScale = 61440;

// Rounds to the nearest scale that a byte can hold, and clamps to the largest. Adding and
// subtracting a number whose last place has the value of the result's last place makes the float32
// adder round.
inline float ByteScale(float x) {
  const float clamped = std::clamp(x, kMinByteScale, kMaxByteScale);
  const uint32_t exponent = std::max(std::bit_cast<uint32_t>(clamped) >> 23, 127U - 14U);
  const float anchor = std::bit_cast<float>((exponent + 20U) << 23);
  return (clamped + anchor) - anchor;
}

// Rounds to the metadata type (float64 stands in for float32). kByte is for at most kMaxFittedBits.
template <typename T>
AffineGroup<T> StoredAffine(const AffineGroup<T>& affine, MetadataType type, int bits) {
  if (type == MetadataType::kFloat32) return affine;
  if (type == MetadataType::kBFloat16)
    return {NearestBFloat16(static_cast<float>(affine.scale)),
            NearestBFloat16(static_cast<float>(affine.zero))};
  const T middle = static_cast<T>(MaxCode(bits)) / 2, steps = ScaleSteps(bits),
          limit = kMaxScaleSteps;
  const T zero = std::nearbyint(std::clamp((affine.zero - middle) * steps, -limit, limit));
  return {ByteScale(static_cast<float>(affine.scale)), middle + zero / steps};
}

// Returns FitAffine of one group. If the metadata type requires that the range contains 0, the
// range is extended to it first.
template <typename T>
AffineGroup<T> RangeOf(std::span<const T> group, MetadataType type, int max_code) {
  if (type != MetadataType::kByte) return FitAffine(group, max_code);
  const auto [min, max] = std::minmax_element(group.begin(), group.end());
  const T range[] = {std::min(*min, T{0}), std::max(*max, T{0})};
  return FitAffine(std::span<const T>(range), max_code);
}

}  // namespace oscar
