// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantizers of linalg/affine_families.h for tensors on any device. They do the same operations
// in the same order, so codes and values equal the scalar ones bit for bit. Trap: the last
// dimension is one quantization group, so reshape or transpose first.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "linalg/affine_families.h"

namespace oscar {

struct AffineFamilyCodes {
  at::Tensor codes;            // [..., group size], whole numbers in the type of the rows
  at::Tensor scales, offsets;  // [..., 1], rounded to the rule's metadata type
};

// `groups`: [..., group size] float32 or float64.
AffineFamilyCodes EncodeAffineFamily(const at::Tensor& groups, const AffineRule& rule);
at::Tensor DecodeAffineFamily(const AffineFamilyCodes& encoded, const AffineRule& rule);

// Encodes and decodes rows [..., dim] in groups of `quant_group_size` neighbouring values.
at::Tensor AffineFamilyRoundTrip(const at::Tensor& rows, const AffineRule& rule,
                                 int64_t quant_group_size);

// Rounds as linalg/stored_float.h does.
at::Tensor RoundTo(const at::Tensor& x, StoredFloat type);

// Sums along `dim`, which stays with size 1, in the order of tests/reference/tree_sum.h.
at::Tensor TreeSum(const at::Tensor& x, int64_t dim);

// Divides with one rounding. A GPU would multiply by the reciprocal of a scalar divisor.
at::Tensor DividedBy(const at::Tensor& x, int64_t divisor);

// Return the square root, exponential and natural logarithm. For float32, they compute in float64
// and round the result, which gives the same bits on every machine. (at::sqrt on a CPU uses MKL,
// which misses the nearest float in 6 of 1000 cases.) For float64, they do not round again.
at::Tensor RoundedSqrt(const at::Tensor& x);
at::Tensor RoundedExp(const at::Tensor& x);
at::Tensor RoundedLog(const at::Tensor& x);

}  // namespace oscar
