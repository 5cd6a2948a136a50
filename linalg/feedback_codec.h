// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine codec with error feedback when rows are written: a row is rounded coordinate by
// coordinate, and each error shifts the later coordinates (error_feedback.h derives the factors U).
// Codes are the nearest ones for the group's stored scale s and zero z. The errors q that are fed
// back are integers, in units of (range of the row's widest group) / FeedbackQuanta(bits), and the
// factors are eight-bit integers. So their sum is exact in any order, and kernels that compute it
// in blocks, with any instruction, write the same codes:
//
//   y_j = x_j (D / s) + z D                     where x_j lies in the range of its group, 0 to 1
//   c_j = rint(max clamp(y_j + (sum_{i<j} q_i U_ij) w, 0, 1))         w = (widest s / s) / quanta
//   q_j = clamp(rint((y_j - c_j D) quanta (s / widest s)), -127, 127)
//
// D = CodeShare(bits) has so few bits that c D is exact. In a row that is one group, w and quanta
// are powers of two. Products with them are then exact too, and may be fused with sums.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"
#include "linalg/affine_group.h"

namespace oscar {

inline constexpr int kMaxFeedback = 127;  // largest |q|, and largest |integer| in a factor
// One code step as a fraction of the range: 1 / max_code, in 20 bits.
constexpr float CodeShare(int bits) {
  constexpr int kOne = 1 << 20;
  return static_cast<float>(kOne / MaxCode(bits)) / kOne;
}
constexpr float FeedbackQuanta(int bits) { return static_cast<float>(16 << bits); }
// Upper bound for the ratio (widest s / s) in w, so that sums with packed factors
// (error_feedback.h) stay finite.
inline constexpr float kMostWider = 0x1p64F;
// Layout of a packed factor (error_feedback.h): coordinates per block, and bytes per column.
inline constexpr int kFeedbackBlock = 16;
constexpr int FeedbackStride(int dim) { return dim + kFeedbackBlock; }

// Computes the codes [dim] of a row x [dim]. The stored scales and zeros [2 dim / quant_group_size]
// are the same as without feedback, and errors are relative to the unclipped row. factor [dim, dim]
// is row-major and strictly upper triangular. This is the scalar reference for every kernel: one
// rounding per operation. Throws NumericalError under the same conditions as EncodeAffineRow.
template <typename T>
void EncodeAffineRowWithFeedback(std::span<const T> x, const AffineFormat& format,
                                 const RowClip& clip, std::span<const T> factor,
                                 std::span<uint8_t> codes, std::span<T> scales_zeros);

// Writes the dequantized row to y [dim].
template <typename T>
void QuantizeDequantizeWithFeedback(std::span<const T> x, const AffineFormat& format,
                                    const RowClip& clip, std::span<const T> factor, std::span<T> y);

}  // namespace oscar
