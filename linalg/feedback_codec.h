// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine codec with error feedback at the write: a row is rounded coordinate by coordinate, and
// the error of each moves the ones after it (error_feedback.h says where to). What is fed back is
// an integer: errors in kFeedbackSteps of the row's widest code step, within +-kMaxFeedback, by
// factors of eight bits. So the sum is exact in any order, and kernels that form it in blocks, by
// whatever instruction, write the same codes:
//
//   q_i = clamp(rint(e_i (32 / s)), -127, 127)      s: the largest scale of the row's groups
//   x'_j = x_j + (sum_{i<j} q_i U_ij) (s / 32)      rounded by the affine codec as x_j would be
//
// s is never 0, since the codec's ranges have a floor.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"

namespace oscar {

inline constexpr int kFeedbackSteps = 32;
inline constexpr int kMaxFeedback = 127;  // of q and of a factor's integers
// Bytes of a column of a packed factor (error_feedback.h).
constexpr int FeedbackStride(int dim) { return dim + 16; }

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
