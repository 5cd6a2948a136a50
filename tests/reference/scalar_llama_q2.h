// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the rows in linalg/llama_q2_codec.h.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/llama_q2_codec.h"

namespace oscar {

// Quantizes x [dim] and writes the dequantized values to y [dim], which may be x. Writes codes
// [dim] unless `codes` is empty. Throws NumericalError for NaN or Inf.
void QuantizeDequantizeLlamaQ2(std::span<const float> x, double clip_ratio,
                               std::span<uint8_t> codes, std::span<float> y);

}  // namespace oscar
