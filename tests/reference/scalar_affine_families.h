// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the quantizers in linalg/affine_families.h, one row at a time.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/affine_families.h"

namespace oscar {

// Quantizes a row x [dim] to codes [dim] and scales_offsets [2 dim / quant_group_size], which are
// rounded to the rule's metadata type (stored_float.h). One rounding per operation, in T. Throws
// NumericalError if x or a scale is not finite.
template <typename T>
void EncodeAffineFamily(std::span<const T> x, const AffineRule& rule, int64_t quant_group_size,
                        std::span<uint8_t> codes, std::span<T> scales_offsets);

template <typename T>
void DecodeAffineFamily(std::span<const uint8_t> codes, std::span<const T> scales_offsets,
                        const AffineRule& rule, int64_t quant_group_size, std::span<T> y);

}  // namespace oscar
