// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine codec with error feedback at the write: a row is rounded coordinate by coordinate, and
// the error of each moves the ones after it (error_feedback.h says where to). Codes are the nearest
// by what is stored of their group, scale s and zero z, and what is fed back is an integer: errors
// in quanta, FeedbackQuanta(bits) to the range of the row's widest group, by factors of eight bits.
// So the sum is exact in any order, and kernels that form it in blocks, by whatever instruction,
// write the same codes:
//
//   y_j = x_j (D / s) + z D                     where x_j lies in the range of its group, 0 to 1
//   c_j = rint(max clamp(y_j + (sum_{i<j} q_i U_ij) w, 0, 1))         w = (widest s / s) / quanta
//   q_j = clamp(rint((y_j - c_j D) quanta (s / widest s)), -127, 127)
//
// D = CodeShare(bits) has so few bits that c D is exact, and in a row of one group so is every
// product by w or by quanta, powers of two: they may be fused with sums.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"
#include "linalg/affine_group.h"

namespace oscar {

inline constexpr int kMaxFeedback = 127;  // of q and of a factor's integers
// One of the code's steps as a share of the range: 1 / max_code, in 20 bits.
constexpr float CodeShare(int bits) {
  constexpr int kOne = 1 << 20;
  return static_cast<float>(kOne / MaxCode(bits)) / kOne;
}
constexpr float FeedbackQuanta(int bits) { return static_cast<float>(16 << bits); }
// Bound of widest s / s in w, so that sums of packed factors (error_feedback.h) stay finite.
inline constexpr float kMostWider = 0x1p64F;
// Of a packed factor (error_feedback.h): coordinates of a block, and bytes of a column.
inline constexpr int kFeedbackBlock = 16;
constexpr int FeedbackStride(int dim) { return dim + kFeedbackBlock; }

// Codes [dim] of a row x [dim]: scales and zeros [2 dim / quant_group_size], as stored, are those
// of the row without feedback; errors are against the row as it came. factor [dim, dim] row-major,
// strictly upper triangular. Scalar reference of every kernel: one rounding per operation. Throws
// NumericalError where EncodeAffineRow would.
template <typename T>
void EncodeAffineRowWithFeedback(std::span<const T> x, const AffineFormat& format,
                                 const RowClip& clip, std::span<const T> factor,
                                 std::span<uint8_t> codes, std::span<T> scales_zeros);

// What is read of it: y [dim].
template <typename T>
void QuantizeDequantizeWithFeedback(std::span<const T> x, const AffineFormat& format,
                                    const RowClip& clip, std::span<const T> factor, std::span<T> y);

}  // namespace oscar
