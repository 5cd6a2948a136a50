// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine codec with error feedback at the write: a row is rounded coordinate by coordinate, and
// the error of each moves the ones after it (error_feedback.h says where to). What is fed back is
// an integer: errors in quanta of about a 16th of the row's widest code step, within
// +-kMaxFeedback, by factors of eight bits. So the sum is exact in any order, and kernels that form
// it in blocks, by whatever instruction, write the same codes:
//
//   q_i = clamp(rint(e_i / u), -127, 127)      16 u: the power of two nearest to the largest scale
//   x'_j = x_j + (sum_{i<j} q_i U_ij) u        rounded by the affine codec as x_j would be
//
// Products by u, a power of two, are exact too, so that they may be fused with sums.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"

namespace oscar {

inline constexpr int kFeedbackSteps = 16;
inline constexpr int kMaxFeedback = 127;  // of q and of a factor's integers
// u of a row whose largest scale is `widest`, which is not 0, since ranges have a floor.
template <typename T>
T FeedbackQuantum(T widest) {
  int exponent;
  const T fraction = std::frexp(widest, &exponent);
  return std::ldexp(T{1} / kFeedbackSteps, fraction < T{0.75} ? exponent - 1 : exponent);
}
// Of a packed factor (error_feedback.h): coordinates of a block, and bytes of a column.
inline constexpr int kFeedbackBlock = 16;
constexpr int FeedbackStride(int dim) { return dim + kFeedbackBlock; }

// Codes [dim] of a row x [dim]: scales and zeros [2 dim / quant_group_size], as stored, are those
// of the row without feedback, by which codes are made here whatever ScaleFit says of them; errors
// are against the row as it came, of what is read of it. factor [dim, dim] row-major, strictly
// upper triangular. Scalar reference of every kernel: one rounding per operation. Throws
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
